// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Job whose operator {@code uid} passes on the first of equal {@code keys}, of type {@code key}. It restores the value
 * state {@code seen} of Spark's {@code dropDuplicates}; with {@code within}, {@code expiresAtMicros} of
 * {@code dropDuplicatesWithinWatermark}.
 */
final class DeduplicateJob {

    private DeduplicateJob() {}

    static List<String> run(JsonNode request) throws Exception {
        String kind = request.get("key").asText();
        List<String> keys = new ArrayList<>();
        request.get("keys").forEach(key -> keys.add(key.toString()));
        return Environment.all(
                Environment.restoring(request)
                        .fromCollection(keys, Types.STRING)
                        .uid("source")
                        .keyBy(new RestoreJob.KeyOf(kind), keyType(kind))
                        .process(request.path("within").asBoolean() ? new WithinWatermark() : new ForEver())
                        .returns(Types.STRING)
                        .uid(request.get("uid").asText())
                        .executeAndCollect());
    }

    @SuppressWarnings("unchecked")
    private static TypeInformation<Object> keyType(String kind) {
        return (TypeInformation<Object>) Keys.typeOf(kind);
    }

    static final class ForEver extends KeyedProcessFunction<Object, String, String> {

        private transient ValueState<Boolean> seen;

        @Override
        public void open(OpenContext context) {
            seen = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Types.BOOLEAN));
        }

        @Override
        public void processElement(String json, Context context, Collector<String> out) throws Exception {
            if (seen.value() == null) {
                seen.update(true);
                out.collect(json);
            }
        }
    }

    static final class WithinWatermark extends KeyedProcessFunction<Object, String, String> {

        private transient ValueState<Long> expiresAt;

        @Override
        public void open(OpenContext context) {
            expiresAt = getRuntimeContext().getState(new ValueStateDescriptor<>("expiresAtMicros", Types.LONG));
        }

        @Override
        public void processElement(String json, Context context, Collector<String> out) throws Exception {
            if (expiresAt.value() == null) {
                expiresAt.update(Long.MAX_VALUE);
                out.collect(json);
            }
        }
    }
}
