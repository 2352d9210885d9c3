package io.github.sparkckpt.flinkcheck;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.MasterState;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.checkpoint.SnapshotType;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;

/** What Flink read, as maps, lists, texts and numbers. */
final class MetadataReport {

    private MetadataReport() {}

    static Map<String, Object> of(CheckpointMetadata metadata) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("checkpointId", metadata.getCheckpointId());
        report.put("properties", properties(metadata.getCheckpointProperties()));
        report.put("masterStates", metadata.getMasterStates().stream().map(MetadataReport::masterState).toList());
        report.put("operatorStates", metadata.getOperatorStates().stream().map(MetadataReport::operator).toList());
        return report;
    }

    private static Map<String, Object> properties(CheckpointProperties properties) {
        if (properties == null) {
            return null;
        }
        SnapshotType type = properties.getCheckpointType();
        Map<String, Object> kind = new LinkedHashMap<>();
        kind.put("class", type.getClass().getSimpleName());
        kind.put("name", type.getName());
        if (type instanceof SavepointType savepoint) {
            kind.put("formatType", savepoint.getFormatType().name());
            kind.put("postCheckpointAction", postCheckpointAction(savepoint));
        } else {
            kind.put("sharingFilesStrategy", type.getSharingFilesStrategy().name());
        }
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("checkpointType", kind);
        report.put("unclaimed", properties.isUnclaimed());
        return report;
    }

    private static String postCheckpointAction(SavepointType savepoint) {
        if (savepoint.shouldDrain()) {
            return "TERMINATE";
        }
        return savepoint.isSynchronous() ? "SUSPEND" : "NONE";
    }

    private static Map<String, Object> masterState(MasterState state) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("name", state.name());
        report.put("version", state.version());
        report.put("payload", HandleReport.bytes(state.bytes()));
        return report;
    }

    private static Map<String, Object> operator(OperatorState state) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("operatorId", state.getOperatorID().toHexString());
        report.put("parallelism", state.getParallelism());
        report.put("maxParallelism", state.getMaxParallelism());
        report.put("fullyFinished", state.isFullyFinished());
        report.put("coordinatorState", HandleReport.stream(state.getCoordinatorState()));
        List<Map<String, Object>> subtasks =
                new TreeMap<>(state.getSubtaskStates())
                        .entrySet().stream().map(entry -> subtask(entry.getKey(), entry.getValue())).toList();
        report.put("subtasks", subtasks);
        return report;
    }

    private static Map<String, Object> subtask(int index, OperatorSubtaskState state) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("index", index);
        report.put("finished", state.isFinished());
        report.put("managedOperatorState", HandleReport.operator(state.getManagedOperatorState()));
        report.put("rawOperatorState", HandleReport.operator(state.getRawOperatorState()));
        report.put("managedKeyedState", HandleReport.keyed(state.getManagedKeyedState()));
        report.put("rawKeyedState", HandleReport.keyed(state.getRawKeyedState()));
        report.put("inputChannelState", HandleReport.channels(state.getInputChannelState()));
        report.put("resultSubpartitionState", HandleReport.channels(state.getResultSubpartitionState()));
        return report;
    }
}
