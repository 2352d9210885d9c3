// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.state.AbstractChannelStateHandle;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.InputChannelStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupsSavepointStateHandle;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.ResultSubpartitionStateHandle;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateBackendHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateHandleStreamImpl;
import org.apache.flink.runtime.state.changelog.inmemory.InMemoryChangelogStateHandle;
import org.apache.flink.runtime.state.filemerging.EmptySegmentFileStateHandle;
import org.apache.flink.runtime.state.filemerging.FileMergingOperatorStreamStateHandle;
import org.apache.flink.runtime.state.filemerging.SegmentFileStateHandle;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;

/**
 * State handles as maps. {@code type} is the name of Flink's class; subclasses are asked for before the classes that
 * they extend.
 */
final class HandleReport {

    private static final int LONGEST_IN_FULL = 64;

    private HandleReport() {}

    /** Bytes in full if they are few, else their digest. */
    static Map<String, Object> bytes(byte[] bytes) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("length", bytes.length);
        if (bytes.length <= LONGEST_IN_FULL) {
            report.put("hex", HexFormat.of().formatHex(bytes));
        } else {
            report.put("sha256", HexFormat.of().formatHex(sha256().digest(bytes)));
        }
        return report;
    }

    static List<Object> operator(Collection<OperatorStateHandle> handles) {
        return handles.stream().<Object>map(HandleReport::operator).toList();
    }

    static List<Object> keyed(Collection<? extends KeyedStateHandle> handles) {
        return handles.stream().<Object>map(HandleReport::keyed).toList();
    }

    static List<Object> channels(Collection<? extends AbstractChannelStateHandle<?>> handles) {
        return handles.stream().<Object>map(HandleReport::channel).toList();
    }

    static Map<String, Object> stream(StreamStateHandle handle) {
        if (handle == null) {
            return null;
        }
        if (handle instanceof KeyGroupsStateHandle keyGroups) {
            return keyed(keyGroups);
        }
        Map<String, Object> report = typed(handle);
        if (handle instanceof ByteStreamStateHandle inline) {
            report.put("handleName", inline.getHandleName());
            report.put("bytes", bytes(inline.getData()));
        } else if (handle instanceof RelativeFileStateHandle relative) {
            report.put("relativePath", relative.getRelativePath());
            report.put("size", relative.getStateSize());
        } else if (handle instanceof EmptySegmentFileStateHandle) {
            return report;
        } else if (handle instanceof SegmentFileStateHandle segment) {
            report.put("path", segment.getFilePath().toString());
            report.put("startPos", segment.getStartPos());
            report.put("size", segment.getStateSize());
            report.put("scope", segment.getScope().name());
            report.put("logicalFileId", segment.getLogicalFileId().getKeyString());
        } else if (handle instanceof FileStateHandle file) {
            report.put("path", file.getFilePath().toString());
            report.put("size", file.getStateSize());
        } else {
            throw new IllegalArgumentException("no report for " + handle.getClass());
        }
        return report;
    }

    private static Map<String, Object> keyed(KeyedStateHandle handle) {
        Map<String, Object> report = typed(handle);
        report.put("keyGroupRange", range(handle.getKeyGroupRange()));
        report.put("stateHandleId", handle.getStateHandleId().getKeyString());
        if (handle instanceof KeyGroupsStateHandle keyGroups) {
            if (handle instanceof KeyGroupsSavepointStateHandle) {
                report.remove("stateHandleId"); // invented at every load, and no file holds it
            }
            List<Long> offsets = new ArrayList<>();
            keyGroups.getKeyGroupRange().forEach(group -> offsets.add(keyGroups.getOffsetForKeyGroup(group)));
            report.put("offsets", offsets);
            report.put("stream", stream(keyGroups.getDelegateStateHandle()));
        } else if (handle instanceof IncrementalRemoteKeyedStateHandle incremental) {
            report.put("backendIdentifier", incremental.getBackendIdentifier().toString());
            report.put("checkpointId", incremental.getCheckpointId());
            report.put("checkpointedSize", incremental.getCheckpointedSize());
            report.put("metaStream", stream(incremental.getMetaDataStateHandle()));
            report.put("shared", files(incremental.getSharedState()));
            report.put("private", files(incremental.getPrivateState()));
        } else if (handle instanceof ChangelogStateBackendHandle changelog) {
            report.put("checkpointId", changelog.getCheckpointId());
            report.put("materializationId", changelog.getMaterializationID());
            report.put("checkpointedSize", changelog.getCheckpointedSize());
            report.put("materialized", keyed(changelog.getMaterializedStateHandles()));
            report.put("nonMaterialized", keyed(changelog.getNonMaterializedStateHandles()));
        } else if (handle instanceof InMemoryChangelogStateHandle changes) {
            report.put("from", changes.getFrom());
            report.put("to", changes.getTo());
            List<Object> entries = new ArrayList<>();
            changes.getChanges()
                    .forEach(c -> entries.add(Map.of("keyGroup", c.getKeyGroup(), "change", bytes(c.getChange()))));
            report.put("changes", entries);
        } else if (handle instanceof ChangelogStateHandleStreamImpl changes) {
            report.put("stateSize", changes.getStateSize());
            report.put("checkpointedSize", changes.getCheckpointedSize());
            report.put("storageIdentifier", changes.getStorageIdentifier());
            List<Object> entries = new ArrayList<>();
            changes.getHandlesAndOffsets().forEach(e -> entries.add(handleAndOffset(e.f0, e.f1)));
            report.put("handles", entries);
        } else {
            throw new IllegalArgumentException("no report for " + handle.getClass());
        }
        return report;
    }

    private static Map<String, Object> handleAndOffset(StreamStateHandle handle, long offset) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("offset", offset);
        report.put("stream", stream(handle)); // may be null, which Map.of does not take
        return report;
    }

    private static Map<String, Object> operator(OperatorStateHandle handle) {
        Map<String, Object> states = new LinkedHashMap<>();
        handle.getStateNameToPartitionOffsets()
                .forEach(
                        (name, info) ->
                                states.put(
                                        name,
                                        Map.of(
                                                "distributionMode",
                                                info.getDistributionMode().name(),
                                                "offsets",
                                                Arrays.stream(info.getOffsets()).boxed().toList())));
        Map<String, Object> report = typed(handle);
        report.put("states", states);
        if (handle instanceof FileMergingOperatorStreamStateHandle merged) {
            report.put("taskOwnedDir", merged.getTaskOwnedDirHandle().getDirectory().toString());
            report.put("sharedDir", merged.getSharedDirHandle().getDirectory().toString());
        }
        report.put("stream", stream(handle.getDelegateStateHandle()));
        return report;
    }

    private static Map<String, Object> channel(AbstractChannelStateHandle<?> handle) {
        Map<String, Object> report = typed(handle);
        report.put("subtaskIndex", handle.getSubtaskIndex());
        if (handle instanceof InputChannelStateHandle input) {
            report.put("gateIdx", input.getInfo().getGateIdx());
            report.put("inputChannelIdx", input.getInfo().getInputChannelIdx());
        } else if (handle instanceof ResultSubpartitionStateHandle result) {
            report.put("partitionIdx", result.getInfo().getPartitionIdx());
            report.put("subPartitionIdx", result.getInfo().getSubPartitionIdx());
        }
        report.put("offsets", handle.getOffsets());
        report.put("stateSize", handle.getStateSize());
        report.put("stream", stream(handle.getDelegate()));
        return report;
    }

    private static Map<String, Object> range(KeyGroupRange range) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("start", range.getStartKeyGroup());
        report.put("end", range.getEndKeyGroup());
        report.put("count", range.getNumberOfKeyGroups());
        return report;
    }

    private static List<Object> files(List<HandleAndLocalPath> files) {
        return files.stream()
                .<Object>map(file -> Map.of("localPath", file.getLocalPath(), "stream", stream(file.getHandle())))
                .toList();
    }

    private static Map<String, Object> typed(Object handle) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("type", handle.getClass().getSimpleName());
        return report;
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every JVM has SHA-256", impossible);
        }
    }
}
