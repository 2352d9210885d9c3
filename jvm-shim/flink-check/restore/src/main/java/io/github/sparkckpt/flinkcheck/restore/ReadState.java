// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.state.api.functions.KeyedStateReaderFunction;
import org.apache.flink.util.Collector;

/**
 * Keyed state of the operator {@code uid} with keys of type {@code key}, through the State Processor API: for each key
 * a JSON array of key, sum, list, map, event-time timers and processing-time timers.
 */
final class ReadState {

    private ReadState() {}

    static List<String> run(JsonNode request) throws Exception {
        SavepointReader reader =
                SavepointReader.read(
                        Environment.empty(request), Environment.savepoint(request), Environment.backend(request));
        return Environment.all(
                reader.readKeyedState(
                                OperatorIdentifier.forUid(request.get("uid").asText()),
                                new Reader(),
                                keyType(request),
                                Types.STRING)
                        .executeAndCollect());
    }

    @SuppressWarnings("unchecked")
    private static TypeInformation<Object> keyType(JsonNode request) {
        return (TypeInformation<Object>) Keys.typeOf(request.get("key").asText());
    }

    static final class Reader extends KeyedStateReaderFunction<Object, String> {

        private transient States states;

        /** What Flink 1.20 calls. */
        public void open(Configuration configuration) {
            states = new States(getRuntimeContext());
        }

        /** What Flink 2.x calls. */
        public void open(OpenContext context) {
            states = new States(getRuntimeContext());
        }

        @Override
        public void readKey(Object key, Context context, Collector<String> out) throws Exception {
            out.collect(
                    Keys.json(
                            Keys.plain(key),
                            states.sum(),
                            states.list(),
                            states.map(),
                            sorted(context.registeredEventTimeTimers()),
                            sorted(context.registeredProcessingTimeTimers())));
        }

        private static List<Long> sorted(Iterable<Long> timers) {
            List<Long> found = new ArrayList<>();
            timers.forEach(found::add);
            Collections.sort(found);
            return found;
        }
    }
}
