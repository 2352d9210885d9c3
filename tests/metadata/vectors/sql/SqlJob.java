import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * DIRECTORY GLOBAL BACKEND [KAFKA]: a job in Flink SQL and a canonical savepoint of it, after 300 rows. With KAFKA, the
 * address of a broker, the numbers of the rows are the records of the topic "orders-of-flink" there.
 *
 * <p>Row i has word = "word " + i % 7, or null if i % 7 is 6; day = i % 3; v = i * 10, or null if i % 5 is 0. All rows of
 * word "word 5" have a null v. If GLOBAL is true, the aggregation has no GROUP BY.
 */
public final class SqlJob {
    static final int ROWS = 300;
    private static final AtomicInteger DONE = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        Path directory = Paths.get(args[0]);
        boolean global = Boolean.parseBoolean(args[1]);
        Configuration conf = new Configuration();
        conf.setString("rest.bind-port", "0");
        conf.setString("restart-strategy.type", "none");
        conf.setString("state.backend.type", args[2]);
        conf.setString("execution.checkpointing.data-inline-threshold", "0b");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, conf);
        env.setParallelism(2);
        env.setMaxParallelism(128);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().set("table.exec.uid.generation", "ALWAYS");
        tables.getConfig().set("table.exec.uid.format", "sql_<transformation>");
        DataStream<Integer> numbers = args.length > 3 ? ofKafka(env, args[3]) : env.addSource(new Numbers()).uid("in");
        var rows = numbers.map(SqlJob::row)
                .returns(Types.ROW_NAMED(new String[] {"word", "day", "v"}, Types.STRING, Types.INT, Types.LONG))
                .uid("row");
        tables.createTemporaryView(
                "t",
                rows,
                Schema.newBuilder().column("word", "STRING").column("day", "INT").column("v", "BIGINT").build());
        Table query = tables.sqlQuery(
                global
                        ? "SELECT COUNT(*), SUM(v) FROM t"
                        : "SELECT word, `day`, COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v) FROM t GROUP BY word, `day`");
        tables.toChangelogStream(query).print().uid("out");
        JobClient job = env.executeAsync();
        while (DONE.get() < ROWS) {
            Thread.sleep(100);
        }
        while (true) {
            try {
                job.triggerSavepoint(directory.toUri().toString(), SavepointFormatType.CANONICAL).get();
                break;
            } catch (ExecutionException e) { // some tasks are not running yet
                Thread.sleep(100);
            }
        }
        job.cancel().get();
        System.exit(0);
    }

    private static DataStream<Integer> ofKafka(StreamExecutionEnvironment env, String servers) {
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(servers)
                .setTopics("orders-of-flink")
                .setGroupId("flink")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), "orders").uid("in").map(Integer::valueOf);
    }

    private static Row row(Integer i) {
        String word = i % 7 == 6 ? null : "word " + i % 7;
        Long value = i % 5 == 0 || i % 7 == 5 ? null : Long.valueOf(i * 10L);
        DONE.incrementAndGet();
        return Row.of(word, i % 3, value);
    }

    /** All rows, then nothing until the job is cancelled. */
    private static final class Numbers implements SourceFunction<Integer> {
        private volatile boolean isRunning = true;

        @Override
        public void run(SourceContext<Integer> context) throws Exception {
            for (int i = 0; i < ROWS; i++) {
                synchronized (context.getCheckpointLock()) {
                    context.collect(i);
                }
            }
            while (isRunning) {
                Thread.sleep(50);
            }
        }

        @Override
        public void cancel() {
            isRunning = false;
        }
    }
}
