// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedBackendSerializationProxy;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.ListDelimitedSerializer;
import org.apache.flink.runtime.state.StateSerializerProvider;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.BackendStateType;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.CommonOptionsKeys;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.CommonSerializerKeys;
import org.apache.flink.runtime.state.restore.FullSnapshotRestoreOperation;
import org.apache.flink.runtime.state.restore.KeyGroup;
import org.apache.flink.runtime.state.restore.KeyGroupEntry;
import org.apache.flink.runtime.state.restore.SavepointRestoreResult;
import org.apache.flink.runtime.state.restore.ThrowingIterator;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Keyed states of canonical savepoints, read by Flink's own restore and serializers: a line of JSON for each savepoint
 * whose directory is on standard input. It has the operators, their states, and each entry of a state as a list of key,
 * namespace, key in a map, and value, or of an element.
 */
public final class KeyedStates {

    private static final ObjectMapper JSON = new ObjectMapper();

    private KeyedStates() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(savepoint(Path.of(line))));
        }
        out.flush();
    }

    private static Map<String, Object> savepoint(Path directory) throws Exception {
        Map<String, Object> operators = new LinkedHashMap<>();
        try (DataInputStream in = new DataInputStream(Files.newInputStream(directory.resolve("_metadata")))) {
            CheckpointMetadata metadata =
                    Checkpoints.loadCheckpointMetadata(in, loader(), directory.toUri().toString());
            for (OperatorState operator : metadata.getOperatorStates()) {
                Map<String, State> states = new LinkedHashMap<>();
                for (OperatorSubtaskState subtask : operator.getSubtaskStates().values()) {
                    for (KeyedStateHandle handle : subtask.getManagedKeyedState()) {
                        read((KeyGroupsStateHandle) handle, operator.getMaxParallelism(), states);
                    }
                }
                if (!states.isEmpty()) {
                    operators.put(operator.getOperatorID().toHexString(), states);
                }
            }
        }
        return operators;
    }

    private static ClassLoader loader() {
        return Thread.currentThread().getContextClassLoader();
    }

    /** Kind and entries of a state. */
    public static final class State {
        public final String kind;
        public final List<List<Object>> entries = new ArrayList<>();

        State(String kind) {
            this.kind = kind;
        }
    }

    private static void read(KeyGroupsStateHandle handle, int maxParallelism, Map<String, State> states)
            throws Exception {
        TypeSerializer<Object> keys = keySerializer(handle);
        FullSnapshotRestoreOperation<Object> operation = new FullSnapshotRestoreOperation<>(
                KeyGroupRange.of(0, maxParallelism - 1),
                loader(),
                List.of(handle),
                StateSerializerProvider.fromNewRegisteredSerializer(keys));
        int prefix = CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(maxParallelism);
        try (ThrowingIterator<SavepointRestoreResult> results = operation.restore()) {
            while (results.hasNext()) {
                SavepointRestoreResult result = results.next();
                List<Reader> readers = new ArrayList<>();
                for (StateMetaInfoSnapshot meta : result.getStateMetaInfoSnapshots()) {
                    readers.add(new Reader(meta, keys, prefix));
                    states.computeIfAbsent(meta.getName(), name -> new State(kind(meta)));
                }
                try (ThrowingIterator<KeyGroup> groups = result.getRestoredKeyGroups()) {
                    while (groups.hasNext()) {
                        try (ThrowingIterator<KeyGroupEntry> entries = groups.next().getKeyGroupEntries()) {
                            while (entries.hasNext()) {
                                KeyGroupEntry entry = entries.next();
                                Reader reader = readers.get(entry.getKvStateId());
                                states.get(reader.name).entries.add(reader.read(entry));
                            }
                        }
                    }
                }
            }
        }
    }

    private static String kind(StateMetaInfoSnapshot meta) {
        String kind = meta.getOption(CommonOptionsKeys.KEYED_STATE_TYPE);
        return kind == null ? meta.getBackendStateType().name() : kind;
    }

    @SuppressWarnings("unchecked")
    private static TypeSerializer<Object> keySerializer(KeyGroupsStateHandle handle) throws IOException {
        try (FSDataInputStream in = handle.openInputStream()) {
            KeyedBackendSerializationProxy<Object> header = new KeyedBackendSerializationProxy<>(loader());
            header.read(new DataInputViewStreamWrapper(in));
            return (TypeSerializer<Object>) header.getKeySerializerSnapshot().restoreSerializer();
        }
    }

    /** Reader of the entries of a state. */
    private static final class Reader {
        private final String name;
        private final String kind;
        private final boolean isQueue;
        private final TypeSerializer<Object> keys;
        private final TypeSerializer<Object> namespaces;
        private final TypeSerializer<Object> values;
        private final int prefix;

        Reader(StateMetaInfoSnapshot meta, TypeSerializer<Object> keys, int prefix) {
            this.name = meta.getName();
            this.kind = kind(meta);
            this.isQueue = meta.getBackendStateType() == BackendStateType.PRIORITY_QUEUE;
            this.keys = keys;
            this.namespaces = isQueue ? null : restored(meta, CommonSerializerKeys.NAMESPACE_SERIALIZER);
            this.values = restored(meta, CommonSerializerKeys.VALUE_SERIALIZER);
            this.prefix = prefix;
        }

        @SuppressWarnings("unchecked")
        private static TypeSerializer<Object> restored(StateMetaInfoSnapshot meta, CommonSerializerKeys key) {
            return (TypeSerializer<Object>) meta.getTypeSerializerSnapshot(key).restoreSerializer();
        }

        List<Object> read(KeyGroupEntry entry) throws Exception {
            DataInputDeserializer in = new DataInputDeserializer(entry.getKey());
            CompositeKeySerializationUtils.readKeyGroup(prefix, in);
            List<Object> found = new ArrayList<>();
            if (isQueue) {
                found.add(Plain.of(values.deserialize(in), values));
                return found;
            }
            boolean isAmbiguous = CompositeKeySerializationUtils.isAmbiguousKeyPossible(keys, namespaces);
            found.add(Plain.of(CompositeKeySerializationUtils.readKey(keys, in, isAmbiguous), keys));
            found.add(Plain.of(CompositeKeySerializationUtils.readNamespace(namespaces, in, isAmbiguous), namespaces));
            DataInputDeserializer value = new DataInputDeserializer(entry.getValue());
            if (kind.equals("MAP")) {
                MapSerializer<?, ?> map = (MapSerializer<?, ?>) (TypeSerializer<?>) values;
                found.add(Plain.of(map.getKeySerializer().deserialize(in), map.getKeySerializer()));
                boolean isNull = value.readBoolean();
                TypeSerializer<?> item = map.getValueSerializer();
                found.add(isNull ? null : Plain.of(item.deserialize(value), item));
            } else if (kind.equals("LIST")) {
                TypeSerializer<?> element = ((ListSerializer<?>) (TypeSerializer<?>) values).getElementSerializer();
                List<Object> items = new ArrayList<>();
                for (Object item : new ListDelimitedSerializer().deserializeList(entry.getValue(), element)) {
                    items.add(Plain.of(item, element));
                }
                found.add(items);
            } else {
                found.add(Plain.of(values.deserialize(value), values));
            }
            return found;
        }
    }
}
