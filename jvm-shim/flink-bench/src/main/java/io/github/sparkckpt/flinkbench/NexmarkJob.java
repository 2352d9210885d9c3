// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkbench;

import java.io.FileInputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFilterFunction;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.formats.common.TimestampFormat;
import org.apache.flink.formats.json.JsonRowDataDeserializationSchema;
import org.apache.flink.formats.parquet.ParquetColumnarRowInputFormat;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TablePipeline;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.table.types.logical.utils.LogicalTypeUtils;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * A query of Nexmark in Flink SQL over Parquet files, several times in one JVM: first to check the answer, then to warm
 * up, then measured. Prints a line of JSON per round.
 *
 * <p>Argument: a file of properties: {@code feed} and {@code files}, or {@code servers} and {@code topic}; {@code
 * checkpoints}, {@code parallelism}, {@code rounds}, {@code type} (the read columns as a SQL type, with the
 * event time as
 * the last one, in files in microseconds), {@code views} (statements with a semicolon after each), {@code
 * query}, {@code
 * checked} (columns whose sums are printed; blank for no check), and settings of Flink after {@code flink.}. For a
 * session, {@code cluster} is its address, and {@code processes} are its process ids, whose CPU time counts.
 */
public final class NexmarkJob {
    private static final String SETTING = "flink.";

    private NexmarkJob() {}

    public static void main(String[] args) throws Exception {
        Properties order = new Properties();
        try (InputStream in = new FileInputStream(args[0])) {
            order.load(in);
        }
        PrintStream report = System.out;
        if (!order.getProperty("checked").isBlank()) {
            report.println(check(order));
        }
        int rounds = Integer.parseInt(order.getProperty("rounds"));
        for (int round = -1; round < rounds; round++) {
            String line = measure(order, round);
            if (round >= 0) {
                report.println(line);
            }
        }
    }

    /** Rows of the answer, and the sums of its checked columns. */
    private static String check(Properties order) throws Exception {
        StreamExecutionEnvironment env = environment(order);
        StreamTableEnvironment tables = tables(env, order);
        String[] columns = order.getProperty("checked").split(",");
        Table table = tables.sqlQuery(order.getProperty("query"));
        tables.toChangelogStream(table).filter(new Sums(columns)).sinkTo(new DiscardingSink<>());
        JobExecutionResult result = env.execute();
        List<String> sums = new ArrayList<>();
        for (String column : columns) {
            sums.add(String.valueOf(result.<Long>getAccumulatorResult(column)));
        }
        return String.format("{\"rows\": %d, \"sums\": [%s]}",
                result.<Long>getAccumulatorResult(Sums.ROWS), String.join(", ", sums));
    }

    private static String measure(Properties order, int round) throws Exception {
        StreamExecutionEnvironment env = environment(order);
        StreamTableEnvironment tables = tables(env, order);
        TablePipeline pipeline = intoNothing(tables.sqlQuery(order.getProperty("query")));
        CheckpointFigures.clear();
        double cpu = cpuSeconds(order);
        JobExecutionResult result = pipeline.execute().getJobClient().orElseThrow().getJobExecutionResult().get();
        cpu = cpuSeconds(order) - cpu;
        List<long[]> found = CheckpointFigures.found();
        return String.format(
                "{\"round\": %d, \"job\": \"%s\", \"seconds\": %.3f, \"cpu_seconds\": %.3f, "
                        + "\"checkpoint_ms\": %s, \"checkpoint_bytes\": %s, \"state_bytes\": %s}",
                round, result.getJobID(), result.getNetRuntime() / 1e3, cpu, numbers(found, 0), numbers(found, 1),
                numbers(found, 2));
    }

    private static TablePipeline intoNothing(Table table) {
        Schema.Builder schema = Schema.newBuilder();
        for (Column column : table.getResolvedSchema().getColumns()) {
            schema.column(column.getName(), TypeConversions.fromLogicalToDataType(
                    LogicalTypeUtils.removeTimeAttributes(column.getDataType().getLogicalType())));
        }
        return table.insertInto(TableDescriptor.forConnector("blackhole").schema(schema.build()).build());
    }

    private static StreamExecutionEnvironment environment(Properties order) {
        Configuration settings = new Configuration();
        for (String name : order.stringPropertyNames()) {
            if (name.startsWith(SETTING)) {
                settings.setString(name.substring(SETTING.length()), order.getProperty(name));
            }
        }
        settings.setString("execution.checkpointing.dir", Path.of(order.getProperty("checkpoints")).toUri().toString());
        settings.setString("metrics.reporters", "figures");
        settings.setString("metrics.reporter.figures.factory.class", CheckpointFigures.Factory.class.getName());
        settings.setString("metrics.reporter.figures.interval", "20 ms");
        int parallelism = Integer.parseInt(order.getProperty("parallelism"));
        String cluster = order.getProperty("cluster");
        if (cluster == null) {
            return StreamExecutionEnvironment.createLocalEnvironment(parallelism, settings);
        }
        String[] address = cluster.split(":");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createRemoteEnvironment(
                address[0], Integer.parseInt(address[1]), settings);
        env.setParallelism(parallelism);
        return env;
    }

    private static StreamTableEnvironment tables(StreamExecutionEnvironment env, Properties order) {
        ClassLoader loader = NexmarkJob.class.getClassLoader();
        RowType type = (RowType) LogicalTypeParser.parse(order.getProperty("type"), loader);
        InternalTypeInfo<RowData> info = InternalTypeInfo.of(type);
        int time = type.getFieldCount() - 1;
        WatermarkStrategy<RowData> watermarks = WatermarkStrategy.forBoundedOutOfOrderness(Duration.ofSeconds(4));
        DataStream<RowData> events = order.getProperty("topic") == null
                ? env.fromSource(
                        files(order, type, info),
                        watermarks.withTimestampAssigner((row, unused) -> row.getLong(time) / 1000), "events", info)
                : env.fromSource(
                        topic(order, type, info),
                        watermarks.withTimestampAssigner(
                                (row, unused) -> row.getTimestamp(time, 3).getMillisecond()), "events", info);
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().set("table.local-time-zone", "UTC");
        Schema schema = Schema.newBuilder()
                .columnByMetadata("ts", "TIMESTAMP_LTZ(3)", "rowtime", true)
                .watermark("ts", "SOURCE_WATERMARK()")
                .build();
        tables.createTemporaryView("events", tables.fromDataStream(events, schema));
        for (String statement : order.getProperty("views").split(";")) {
            if (!statement.isBlank()) {
                tables.executeSql(statement);
            }
        }
        return tables;
    }

    private static FileSource<RowData> files(Properties order, RowType type, InternalTypeInfo<RowData> info) {
        ParquetColumnarRowInputFormat<org.apache.flink.connector.file.src.FileSourceSplit> format =
                new ParquetColumnarRowInputFormat<>(
                        new org.apache.hadoop.conf.Configuration(), type, info, 2048, true, true);
        int files = Integer.parseInt(order.getProperty("files"));
        return FileSource.forBulkFileFormat(
                        format, new org.apache.flink.core.fs.Path(Path.of(order.getProperty("feed")).toUri()))
                .setFileEnumerator(() -> new RowGroups(files))
                .setSplitAssigner(RowGroups.InOrder::new)
                .build();
    }

    /** All records that the topic has when the job begins. */
    private static KafkaSource<RowData> topic(Properties order, RowType type, InternalTypeInfo<RowData> info) {
        return KafkaSource.<RowData>builder()
                .setBootstrapServers(order.getProperty("servers"))
                .setTopics(order.getProperty("topic"))
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setBounded(OffsetsInitializer.latest())
                .setValueOnlyDeserializer(
                        new JsonRowDataDeserializationSchema(type, info, false, false, TimestampFormat.ISO_8601))
                .build();
    }

    /** CPU time of this process, and of those of the session. */
    private static double cpuSeconds(Properties order) {
        double seconds = ownCpuSeconds();
        for (String pid : order.getProperty("processes", "").split(",")) {
            if (!pid.isBlank()) {
                Duration used = ProcessHandle.of(Long.parseLong(pid)).orElseThrow().info().totalCpuDuration()
                        .orElseThrow();
                seconds += used.toMillis() / 1e3;
            }
        }
        return seconds;
    }

    private static double ownCpuSeconds() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                        .getProcessCpuTime()
                / 1e9;
    }

    private static String numbers(List<long[]> found, int column) {
        return found.stream().map(one -> String.valueOf(one[column])).collect(Collectors.joining(", ", "[", "]"));
    }

    /** Counts the rows of a changelog's table, and sums columns over them. */
    private static final class Sums extends RichFilterFunction<Row> {
        static final String ROWS = "rows";
        private static final long serialVersionUID = 1;

        private final String[] columns;
        private transient LongCounter rows;
        private transient LongCounter[] sums;

        Sums(String[] columns) {
            this.columns = columns;
        }

        @Override
        public void open(OpenContext context) {
            rows = new LongCounter();
            getRuntimeContext().addAccumulator(ROWS, rows);
            sums = new LongCounter[columns.length];
            for (int i = 0; i < columns.length; i++) {
                sums[i] = new LongCounter();
                getRuntimeContext().addAccumulator(columns[i], sums[i]);
            }
        }

        @Override
        public boolean filter(Row row) {
            long sign = row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER ? 1 : -1;
            rows.add(sign);
            for (int i = 0; i < columns.length; i++) {
                sums[i].add(sign * ((Number) row.getField(columns[i])).longValue());
            }
            return false;
        }
    }
}
