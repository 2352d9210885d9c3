import java.time.Duration;
import java.util.Collection;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.state.rocksdb.RocksDBOptionsFactory;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;

/**
 * PARALLELISM CHECKPOINTS KEYS FIRST END [RESTORE]: a job with sliding windows of 20 s every 10 s, for Flink 2.1:
 * RocksDB with incremental checkpoints, LZ4 and 1,000 key groups. CHECKPOINTS and RESTORE are URIs. It fails on purpose
 * after round END - 1, so that the newest checkpoint is retained. Each system property flink.KEY is a setting.
 *
 * <p>Round r, from FIRST until before END, begins with the watermark (r - 1) * 10,000 - 1 ms. Then each key k with
 * (k + r) % 3 other than 2 gets the record r * 1,000 + k at r * 10,000 + k ms. A window that closes writes its start to
 * a list and to a value with a time to live of its key, and, if k is odd, the number of its records to a state of its
 * own, which stays. Keys with k % 5 = 4 clear the list and the value.
 */
public final class WindowJob {
    private static final long SLIDE_MS = 10_000;

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.setString("rest.bind-port", "0");
        conf.setString("restart-strategy.type", "none");
        conf.setString("state.backend.type", "rocksdb");
        conf.setString("state.backend.rocksdb.compression.per.level", "LZ4_COMPRESSION");
        conf.setString("execution.checkpointing.interval", "300ms");
        conf.setString("execution.checkpointing.incremental", "true");
        conf.setString("execution.checkpointing.dir", args[1]);
        conf.setString("execution.checkpointing.data-inline-threshold", "0b");
        conf.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        if (args.length > 5) {
            conf.setString("execution.state-recovery.path", args[5]);
        }
        System.getProperties().forEach((key, value) -> {
            if (key.toString().startsWith("flink.")) {
                conf.setString(key.toString().substring("flink.".length()), value.toString());
            }
        });
        int parallelism = Integer.parseInt(args[0]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(parallelism, conf);
        env.setParallelism(parallelism);
        env.setMaxParallelism(1000);
        int keys = Integer.parseInt(args[2]);
        env.addSource(new Rounds(keys, Integer.parseInt(args[3]), Integer.parseInt(args[4])), Types.LONG)
                .uid("in")
                .keyBy(record -> "key " + record % 1000, Types.STRING)
                .window(SlidingEventTimeWindows.of(Duration.ofMillis(2 * SLIDE_MS), Duration.ofMillis(SLIDE_MS)))
                .process(new Closed())
                .returns(Types.LONG)
                .uid("windows")
                .print();
        try {
            env.execute();
        } catch (Exception e) {
            Throwable cause = e;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println(cause);
            System.exit(0);
        }
    }

    /** Keeps each file as it was flushed, with its deletions: `flink.state.backend.rocksdb.options-factory`. */
    public static final class NoCompaction implements RocksDBOptionsFactory {
        @Override
        public DBOptions createDBOptions(DBOptions current, Collection<AutoCloseable> handlesToClose) {
            return current;
        }

        @Override
        public ColumnFamilyOptions createColumnOptions(
                ColumnFamilyOptions current, Collection<AutoCloseable> handlesToClose) {
            return current.setDisableAutoCompactions(true);
        }
    }

    private static final class Closed extends ProcessWindowFunction<Long, Long, String, TimeWindow> {
        private static final ListStateDescriptor<Long> CLOSED = new ListStateDescriptor<>("closed", Types.LONG);
        private static final ValueStateDescriptor<Long> FIRED = new ValueStateDescriptor<>("fired", Types.LONG);
        private static final ValueStateDescriptor<Long> LAST = last();

        private static ValueStateDescriptor<Long> last() {
            ValueStateDescriptor<Long> last = new ValueStateDescriptor<>("last", Types.LONG);
            last.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(1000)).build());
            return last;
        }

        @Override
        public void process(String key, Context context, Iterable<Long> records, Collector<Long> out)
                throws Exception {
            long count = 0;
            for (Long ignored : records) {
                count++;
            }
            if (number(key) % 2 == 1) {
                context.windowState().getState(FIRED).update(count);
            }
            context.globalState().getListState(CLOSED).add(context.window().getStart());
            context.globalState().getState(LAST).update(context.window().getStart());
            if (number(key) % 5 == 4) {
                context.globalState().getListState(CLOSED).clear();
                context.globalState().getState(LAST).clear();
            }
        }

        private static int number(String key) {
            return Integer.parseInt(key.substring("key ".length()));
        }
    }

    private static final class Rounds implements SourceFunction<Long>, CheckpointListener {
        private final int keys;
        private final int first;
        private final int end;
        private volatile int checkpoints = 0;
        private volatile boolean isRunning = true;

        Rounds(int keys, int first, int end) {
            this.keys = keys;
            this.first = first;
            this.end = end;
        }

        @Override
        public void notifyCheckpointComplete(long id) {
            checkpoints++;
        }

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            for (int round = first; round < end; round++) {
                int before;
                synchronized (context.getCheckpointLock()) {
                    context.emitWatermark(new Watermark((round - 1) * SLIDE_MS - 1));
                    for (int key = 0; key < keys; key++) {
                        if ((key + round) % 3 != 2) {
                            context.collectWithTimestamp(round * 1000L + key, round * SLIDE_MS + key);
                        }
                    }
                    before = checkpoints;
                }
                while (isRunning && checkpoints < before + 2) { // the first may have begun before this round
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
