import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.util.Collector;

/**
 * PARALLELISM CHECKPOINTS KEYS [RESTORE]: a job on RocksDB with incremental checkpoints, 1,000 key groups and keys of
 * Flink SQL, which fails on purpose after several checkpoints, so that the newest is retained. Each system property
 * flink.KEY is a setting.
 *
 * <p>Key k gets three records, and after a restore three more if it is odd. Each adds k to a sum (and a million after a
 * restore) and to a list, and writes k to an entry of a map and to a value with a time to live. Every third key is
 * cleared at each record.
 */
public final class RowsJob {
    private static final AtomicInteger DONE = new AtomicInteger();
    private static final RowType ROW = RowType.of(
            new LogicalType[] {new VarCharType(VarCharType.MAX_LENGTH), new BigIntType()}, new String[] {"s", "l"});

    public static void main(String[] args) throws Exception {
        int parallelism = Integer.parseInt(args[0]);
        int keys = Integer.parseInt(args[2]);
        boolean again = args.length > 3;
        Configuration conf = new Configuration();
        conf.setString("rest.bind-port", "0");
        conf.setString("restart-strategy.type", "none");
        conf.setString("state.backend.type", "rocksdb");
        conf.setString("execution.checkpointing.interval", "300ms");
        conf.setString("execution.checkpointing.incremental", "true");
        conf.setString("execution.checkpointing.dir", Paths.get(args[1]).toUri().toString());
        conf.setString("execution.checkpointing.data-inline-threshold", "0b");
        conf.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        if (again) {
            conf.setString("execution.state-recovery.path", Paths.get(args[3]).toUri().toString());
        }
        System.getProperties().forEach((key, value) -> {
            if (key.toString().startsWith("flink.")) {
                conf.setString(key.toString().substring("flink.".length()), value.toString());
            }
        });
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, conf);
        env.setParallelism(parallelism);
        env.setMaxParallelism(1000);
        List<Long> numbers = new ArrayList<>();
        for (int i = 0; i < keys * 3; i++) {
            if (!again || i % keys % 2 == 1) {
                numbers.add((long) (i % keys));
            }
        }
        env.addSource(new Numbers(numbers), Types.LONG)
                .uid("in")
                .keyBy((KeySelector<Long, RowData>) RowsJob::key, InternalTypeInfo.of(ROW))
                .process(new Sums(again))
                .returns(Types.LONG)
                .uid("by-row")
                .print();
        try {
            env.execute();
        } catch (Exception e) {
            System.exit(0);
        }
    }

    private static RowData key(long number) {
        RowDataSerializer serializer = new RowDataSerializer(ROW);
        return serializer.toBinaryRow(GenericRowData.of(StringData.fromString("key " + number), number)).copy();
    }

    private static final class Sums extends KeyedProcessFunction<RowData, Long, Long>
            implements CheckpointedFunction, CheckpointListener {
        private final boolean again;
        private transient ValueState<Long> sum;
        private transient ValueState<Long> ttl;
        private transient ListState<Long> list;
        private transient MapState<String, Long> map;

        Sums(boolean again) {
            this.again = again;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {}

        @Override
        public void notifyCheckpointComplete(long id) {
            DONE.incrementAndGet();
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            var store = context.getKeyedStateStore();
            sum = store.getState(new ValueStateDescriptor<>("sum", Types.LONG));
            list = store.getListState(new ListStateDescriptor<>("list", Types.LONG));
            map = store.getMapState(new MapStateDescriptor<>("map", Types.STRING, Types.LONG));
            ValueStateDescriptor<Long> kept = new ValueStateDescriptor<>("ttl", Types.LONG);
            kept.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(1000)).build());
            ttl = store.getState(kept);
        }

        @Override
        public void processElement(Long number, Context context, Collector<Long> out) throws Exception {
            sum.update((sum.value() == null ? 0 : sum.value()) + number + (again ? 1_000_000 : 0));
            list.add(number);
            map.put("m" + number % 5, number);
            map.put("gone", 1L);
            map.remove("gone");
            ttl.update(number);
            if (number % 3 == 2) {
                sum.clear();
                list.clear();
                map.clear();
                ttl.clear();
            }
        }
    }

    /** A third of the numbers, then checkpoints, three times. */
    private static final class Numbers implements SourceFunction<Long> {
        private final List<Long> numbers;
        private volatile boolean isRunning = true;

        Numbers(List<Long> numbers) {
            this.numbers = numbers;
        }

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            for (int part = 0; part < 3; part++) {
                int before = DONE.get();
                synchronized (context.getCheckpointLock()) {
                    for (int i = part * numbers.size() / 3; i < (part + 1) * numbers.size() / 3; i++) {
                        context.collect(numbers.get(i));
                    }
                }
                while (isRunning && DONE.get() < before + 8) {
                    Thread.sleep(20);
                }
            }
            throw new IllegalStateException("enough");
        }

        @Override
        public void cancel() {
            isRunning = false;
        }
    }
}
