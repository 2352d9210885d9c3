// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/**
 * Job that restores operator state of the operator {@code uid}, which is not keyed: from each subtask a JSON array of
 * its elements of the list states {@code split} and {@code union}.
 */
final class SourceJob {

    private SourceJob() {}

    static List<String> run(JsonNode request) throws Exception {
        int parallelism = request.path("parallelism").asInt(1);
        return Environment.all(
                Environment.restoring(request)
                        .fromCollection(Collections.nCopies(parallelism, "x"), Types.STRING)
                        .uid("source")
                        .rebalance()
                        .map(new Elements())
                        .uid(request.get("uid").asText())
                        .executeAndCollect());
    }

    static final class Elements implements MapFunction<String, String>, CheckpointedFunction {

        private transient ListState<String> split;
        private transient ListState<Long> union;

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            split = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("split", Types.STRING));
            union = context.getOperatorStateStore().getUnionListState(new ListStateDescriptor<>("union", Types.LONG));
        }

        @Override
        public String map(String any) throws Exception {
            return Keys.json(all(split), all(union));
        }

        private static <T> List<T> all(ListState<T> state) throws Exception {
            List<T> found = new ArrayList<>();
            state.get().forEach(found::add);
            return found;
        }
    }
}
