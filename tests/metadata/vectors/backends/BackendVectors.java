import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.RunnableFuture;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.BooleanSerializer;
import org.apache.flink.api.common.typeutils.base.ByteSerializer;
import org.apache.flink.api.common.typeutils.base.DoubleSerializer;
import org.apache.flink.api.common.typeutils.base.FloatSerializer;
import org.apache.flink.api.common.typeutils.base.InstantSerializer;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.common.typeutils.base.ShortSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.changelog.fs.ChangelogStorageMetricGroup;
import org.apache.flink.changelog.fs.StateChangeFsUploader;
import org.apache.flink.changelog.fs.StateChangeSet;
import org.apache.flink.changelog.fs.StateChangeUploadScheduler.UploadTask;
import org.apache.flink.changelog.fs.TaskChangelogRegistry;
import org.apache.flink.changelog.fs.UploadResult;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.fs.local.LocalFileSystem;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.checkpoint.metadata.MetadataV3Serializer;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.state.CheckpointStorageLocationReference;
import org.apache.flink.runtime.state.DefaultOperatorStateBackend;
import org.apache.flink.runtime.state.DefaultOperatorStateBackendBuilder;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.LocalRecoveryConfig;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.SavepointResources;
import org.apache.flink.runtime.state.SavepointSnapshotStrategy;
import org.apache.flink.runtime.state.SnappyStreamCompressionDecorator;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.SnapshotStrategyRunner;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.UncompressedStreamCompressionDecorator;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.changelog.ChangelogStateHandleStreamImpl;
import org.apache.flink.runtime.state.changelog.SequenceNumber;
import org.apache.flink.runtime.state.changelog.StateChange;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackend;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackendBuilder;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSetFactory;
import org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory;
import org.apache.flink.runtime.state.metrics.LatencyTrackingStateConfig;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.streaming.api.operators.TimerHeapInternalTimer;
import org.apache.flink.streaming.api.operators.TimerSerializer;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;

/**
 * Writes metadata files through the state backends of Flink 1.20.5, with state that the jobs behind the other vectors
 * do not have: all types, namespaces, compression of everything, a type that is not known to us.
 *
 * <p>The argument is the directory to write to. It needs flink-streaming-java and flink-dstl-dfs.
 */
public final class BackendVectors {
    private static final int KEYS = 12;
    private static final int MOST_BYTES = 1 << 24;
    private static final ClassLoader LOADER = BackendVectors.class.getClassLoader();

    public static void main(String[] args) throws Exception {
        Path target = Path.of(args[0]);
        for (boolean compressed : new boolean[] {false, true}) {
            String suffix = compressed ? "-compressed" : "";
            try (HeapKeyedStateBackend<Integer> backend = types(compressed)) {
                write(target.resolve("types-heap" + suffix), 64, snapshot(backend));
                write(target.resolve("types-full" + suffix), 64, savepoint(backend));
            }
            try (HeapKeyedStateBackend<String> backend = namespaces(compressed)) {
                write(target.resolve("namespaces-heap" + suffix), 300, snapshot(backend));
                write(target.resolve("namespaces-full" + suffix), 300, savepoint(backend));
            }
            operator(target.resolve("operator" + suffix), compressed);
            changelog(target.resolve("changelog" + suffix), compressed);
        }
        VoidNamespaceSerializer none = VoidNamespaceSerializer.INSTANCE;
        try (HeapKeyedStateBackend<Long> backend = backend(LongSerializer.INSTANCE, 1, false)) {
            backend.setCurrentKey(7L);
            state(backend, VoidNamespace.INSTANCE, none, value("only", LongSerializer.INSTANCE)).update(49L);
            write(target.resolve("one-key-group-heap"), 1, snapshot(backend));
            write(target.resolve("one-key-group-full"), 1, savepoint(backend));
        }
        try (HeapKeyedStateBackend<Long> backend = backend(LongSerializer.INSTANCE, 128, false)) {
            long[] keys = {Long.MIN_VALUE, -(1L << 40) - 5, -1, 1L << 32, 123_456_789_012L, Long.MAX_VALUE};
            for (long key : keys) {
                backend.setCurrentKey(key);
                state(backend, VoidNamespace.INSTANCE, none, value("key", LongSerializer.INSTANCE)).update(key);
            }
            write(target.resolve("long-keys-heap"), 128, snapshot(backend));
        }
        try (HeapKeyedStateBackend<Long> backend = backend(LongSerializer.INSTANCE, 8, false)) {
            backend.setCurrentKey(7L);
            state(backend, VoidNamespace.INSTANCE, none, value("known", LongSerializer.INSTANCE)).update(49L);
            ValueState<Instant> instant =
                    state(backend, VoidNamespace.INSTANCE, none, value("instant", InstantSerializer.INSTANCE));
            instant.update(Instant.ofEpochSecond(7));
            state(backend, VoidNamespace.INSTANCE, none, value("behind", LongSerializer.INSTANCE)).update(50L);
            write(target.resolve("unknown-heap"), 8, snapshot(backend));
            write(target.resolve("unknown-full"), 8, savepoint(backend));
        }
    }

    /** Integer keys; a state of each type, in one time window, and an event-time timer. */
    private static HeapKeyedStateBackend<Integer> types(boolean compressed) throws Exception {
        HeapKeyedStateBackend<Integer> backend = backend(IntSerializer.INSTANCE, 64, compressed);
        TimeWindow window = new TimeWindow(-1000, 59_000);
        TimeWindow.Serializer windows = new TimeWindow.Serializer();
        var timers = backend.create("_timer_state/event_x", new TimerSerializer<>(IntSerializer.INSTANCE, windows));
        ListSerializer<Map<Short, String>> nested =
                new ListSerializer<>(new MapSerializer<>(ShortSerializer.INSTANCE, StringSerializer.INSTANCE));
        for (int key = -2; key < KEYS - 2; key++) {
            backend.setCurrentKey(key);
            state(backend, window, windows, value("boolean", BooleanSerializer.INSTANCE)).update(key % 2 == 0);
            state(backend, window, windows, value("byte", ByteSerializer.INSTANCE)).update((byte) (key * 10));
            state(backend, window, windows, value("short", ShortSerializer.INSTANCE)).update((short) (key * -1000));
            state(backend, window, windows, value("int", IntSerializer.INSTANCE)).update(key * 1_000_000);
            state(backend, window, windows, value("long", LongSerializer.INSTANCE)).update(key * -1_000_000_000_000L);
            state(backend, window, windows, value("float", FloatSerializer.INSTANCE)).update(key * 0.5f);
            state(backend, window, windows, value("double", DoubleSerializer.INSTANCE)).update(key * 0.1);
            ValueState<String> string = state(backend, window, windows, value("string", StringSerializer.INSTANCE));
            string.update("\u0000\u00e4\u540d\ud83d\ude00".repeat(key + 2));
            byte[] bytes = new byte[key + 2];
            Arrays.fill(bytes, (byte) key);
            state(backend, window, windows, value("bytes", BytePrimitiveArraySerializer.INSTANCE)).update(bytes);
            state(backend, window, windows, value("nested", nested))
                    .update(List.of(Map.of((short) key, "a"), Map.of()));
            MapState<String, String> map = state(backend, window, windows,
                    new MapStateDescriptor<>("map", StringSerializer.INSTANCE, StringSerializer.INSTANCE));
            map.put("twice", String.valueOf(key * 2));
            map.put("null", null);
            ListState<String> list =
                    state(backend, window, windows, new ListStateDescriptor<>("list", StringSerializer.INSTANCE));
            for (int i = 0; i <= key + 2; i++) {
                list.add("," + i);
            }
            timers.add(new TimerHeapInternalTimer<>(-5000L + key, key, window));
        }
        return backend;
    }

    /** String keys and namespaces: in a full snapshot each is followed by its length. Two bytes of key group. */
    private static HeapKeyedStateBackend<String> namespaces(boolean compressed) throws Exception {
        HeapKeyedStateBackend<String> backend = backend(StringSerializer.INSTANCE, 300, compressed);
        StringSerializer names = StringSerializer.INSTANCE;
        for (int key = 0; key < KEYS; key++) {
            backend.setCurrentKey("k".repeat(key * 30));
            for (String namespace : List.of("", "n".repeat(300))) {
                state(backend, namespace, names, value("value", LongSerializer.INSTANCE))
                        .update(key + (long) namespace.length());
                MapState<Long, String> map = state(backend, namespace, names,
                        new MapStateDescriptor<>("map", LongSerializer.INSTANCE, StringSerializer.INSTANCE));
                map.put((long) key, namespace);
            }
        }
        return backend;
    }

    private static void operator(Path target, boolean compressed) throws Exception {
        ExecutionConfig config = new ExecutionConfig();
        config.setUseSnapshotCompression(compressed);
        DefaultOperatorStateBackendBuilder builder =
                new DefaultOperatorStateBackendBuilder(LOADER, config, false, List.of(), new CloseableRegistry());
        try (DefaultOperatorStateBackend backend = builder.build()) {
            ListState<Long> split = backend.getListState(new ListStateDescriptor<>("split", LongSerializer.INSTANCE));
            ListState<String> union =
                    backend.getUnionListState(new ListStateDescriptor<>("union", StringSerializer.INSTANCE));
            backend.getListState(new ListStateDescriptor<>("empty", LongSerializer.INSTANCE));
            BroadcastState<Integer, String> broadcast = backend.getBroadcastState(
                    new MapStateDescriptor<>("broadcast", IntSerializer.INSTANCE, StringSerializer.INSTANCE));
            backend.getBroadcastState(
                    new MapStateDescriptor<>("empty broadcast", IntSerializer.INSTANCE, StringSerializer.INSTANCE));
            for (int i = 0; i < KEYS; i++) {
                split.add(i * 7L);
                // One is longer than a chunk of 64 KiB.
                union.add("u".repeat(compressed && i == 5 ? 70_000 : i * 20));
                broadcast.put(i, "b" + i);
            }
            RunnableFuture<SnapshotResult<OperatorStateHandle>> future =
                    backend.snapshot(1, 1, new MemCheckpointStreamFactory(MOST_BYTES), checkpoint());
            future.run();
            OperatorStateHandle handle = future.get().getJobManagerOwnedSnapshot();
            write(target, 128, OperatorSubtaskState.builder().setManagedOperatorState(handle).build());
        }
    }

    /** Three sets of changes in one file; the first and the last belong to the handle. */
    private static void changelog(Path target, boolean compressed) throws Exception {
        List<StateChangeSet> sets = new ArrayList<>();
        UUID log = UUID.randomUUID();
        for (int set = 0; set < 3; set++) {
            List<StateChange> changes = new ArrayList<>();
            changes.add(StateChange.ofMetadataChange(("meta " + set).getBytes(StandardCharsets.UTF_8)));
            for (int i = 0; i < KEYS; i++) {
                String change = ("change " + set + " " + i).repeat(i + 1);
                changes.add(StateChange.ofDataChange(i % 4, change.getBytes(StandardCharsets.UTF_8)));
            }
            sets.add(new StateChangeSet(log, SequenceNumber.of(set), changes));
        }
        Map<Long, UploadResult> results = new TreeMap<>();
        UploadTask task = new UploadTask(
                sets,
                done -> done.forEach(one -> results.put(one.getOffset(), one)),
                (failed, cause) -> {
                    throw new IllegalStateException(cause);
                });
        Path files = Files.createTempDirectory("changelog");
        try (StateChangeFsUploader uploader = new StateChangeFsUploader(
                new JobID(),
                new org.apache.flink.core.fs.Path(files.toUri()),
                LocalFileSystem.getSharedInstance(),
                compressed,
                4096,
                new ChangelogStorageMetricGroup(new UnregisteredMetricsGroup()),
                TaskChangelogRegistry.NO_OP)) {
            uploader.upload(List.of(task)).complete();
        }
        Files.createDirectories(target);
        try (var found = Files.walk(files)) {
            Files.copy(found.filter(Files::isRegularFile).findFirst().orElseThrow(), target.resolve("changes"));
        }
        List<Tuple2<StreamStateHandle, Long>> parts = new ArrayList<>();
        long size = 0;
        for (UploadResult result : results.values()) {
            if (!result.getSequenceNumber().equals(SequenceNumber.of(1))) {
                var path = new org.apache.flink.core.fs.Path("oracle://ckpt/" + target.getFileName() + "/changes");
                long fileSize = result.getStreamStateHandle().getStateSize();
                parts.add(Tuple2.of(new FileStateHandle(path, fileSize), result.getOffset()));
                size += result.getSize();
            }
        }
        write(target, 64, new ChangelogStateHandleStreamImpl(parts, KeyGroupRange.of(0, 63), size, size, "filesystem"));
    }

    private static <K> HeapKeyedStateBackend<K> backend(TypeSerializer<K> keys, int keyGroups, boolean compressed)
            throws Exception {
        KeyGroupRange range = KeyGroupRange.of(0, keyGroups - 1);
        return new HeapKeyedStateBackendBuilder<>(
                        null,
                        keys,
                        LOADER,
                        keyGroups,
                        range,
                        new ExecutionConfig(),
                        TtlTimeProvider.DEFAULT,
                        LatencyTrackingStateConfig.disabled(),
                        List.of(),
                        compressed
                                ? SnappyStreamCompressionDecorator.INSTANCE
                                : UncompressedStreamCompressionDecorator.INSTANCE,
                        LocalRecoveryConfig.BACKUP_AND_RECOVERY_DISABLED,
                        new HeapPriorityQueueSetFactory(range, keyGroups, 128),
                        false,
                        new CloseableRegistry())
                .build();
    }

    private static <T> ValueStateDescriptor<T> value(String name, TypeSerializer<T> serializer) {
        return new ValueStateDescriptor<>(name, serializer);
    }

    private static <N, S extends State> S state(
            HeapKeyedStateBackend<?> backend, N namespace, TypeSerializer<N> serializer, StateDescriptor<S, ?> state)
            throws Exception {
        return backend.getPartitionedState(namespace, serializer, state);
    }

    private static KeyedStateHandle snapshot(HeapKeyedStateBackend<?> backend) throws Exception {
        RunnableFuture<SnapshotResult<KeyedStateHandle>> future =
                backend.snapshot(1, 1, new MemCheckpointStreamFactory(MOST_BYTES), checkpoint());
        future.run();
        return future.get().getJobManagerOwnedSnapshot();
    }

    private static <K> KeyedStateHandle savepoint(HeapKeyedStateBackend<K> backend) throws Exception {
        SavepointResources<K> resources = backend.savepoint();
        SnapshotStrategyRunner<KeyedStateHandle, ?> runner = new SnapshotStrategyRunner<>(
                "savepoint",
                new SavepointSnapshotStrategy<>(resources.getSnapshotResources()),
                new CloseableRegistry(),
                resources.getPreferredSnapshotExecutionType());
        CheckpointOptions options = new CheckpointOptions(
                SavepointType.savepoint(SavepointFormatType.CANONICAL),
                CheckpointStorageLocationReference.getDefault());
        RunnableFuture<SnapshotResult<KeyedStateHandle>> future =
                runner.snapshot(1, 1, new MemCheckpointStreamFactory(MOST_BYTES), options);
        future.run();
        return future.get().getJobManagerOwnedSnapshot();
    }

    private static CheckpointOptions checkpoint() {
        return CheckpointOptions.forCheckpointWithDefaultLocation();
    }

    private static void write(Path target, int maxParallelism, KeyedStateHandle handle) throws Exception {
        write(target, maxParallelism, OperatorSubtaskState.builder().setManagedKeyedState(handle).build());
    }

    private static void write(Path target, int maxParallelism, OperatorSubtaskState subtask) throws Exception {
        OperatorState operator = new OperatorState(new OperatorID(1, 2), 1, maxParallelism);
        operator.putState(0, subtask);
        CheckpointMetadata metadata = new CheckpointMetadata(1, List.of(operator), List.of());
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Checkpoints.storeCheckpointMetadata(metadata, new DataOutputStream(out), MetadataV3Serializer.INSTANCE);
        Files.createDirectories(target);
        Files.write(target.resolve("_metadata"), out.toByteArray());
    }
}
