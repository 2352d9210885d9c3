// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.runtime.checkpoint.CheckpointProperties;
import org.apache.flink.runtime.checkpoint.MasterState;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;

/** Flink's view of a `_metadata`, as maps, lists, texts, numbers and bytes. */
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

    /** In Java's serialisation, as in a file: not all of them have an accessor. */
    private static byte[] properties(CheckpointProperties properties) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(properties);
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
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
