// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.kafka;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.util.Collector;

/**
 * KafkaCountJob SERVERS TOPIC SAVEPOINT SOURCE_UID PARALLELISM NUMBER COUNT_UID: counts and sums the column
 * {@code value} by the column {@code key} of JSON records. Positions and counts are those of the savepoint, which may
 * have no other state. Prints key, count and sum after each record, as {@link KafkaJob} prints.
 */
public final class KafkaCountJob {

    private KafkaCountJob() {}

    public static void main(String[] arguments) throws Exception {
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(arguments[0])
                        .setTopics(arguments[1])
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setProperty("partition.discovery.interval.ms", "500")
                        .setValueOnlyDeserializer(new SimpleStringSchema())
                        .build();
        ObjectMapper json = new ObjectMapper();
        Restored.print(
                Restored.environment(arguments[2], Integer.parseInt(arguments[4]), false)
                        .fromSource(source, WatermarkStrategy.noWatermarks(), "source")
                        .uid(arguments[3])
                        .map(
                                record -> {
                                    JsonNode fields = json.readTree(record);
                                    return Tuple2.of(fields.get("key").asText(), fields.get("value").asLong());
                                })
                        .returns(Types.TUPLE(Types.STRING, Types.LONG))
                        .uid("parse")
                        .keyBy(row -> row.f0, Types.STRING)
                        .process(new Count())
                        .uid(arguments[6])
                        .executeAndCollect(),
                Integer.parseInt(arguments[5]));
    }

    /** Goes on from the buffers of Spark's aggregate: count and sum. */
    static final class Count extends KeyedProcessFunction<String, Tuple2<String, Long>, String> {

        private transient ValueState<RowData> aggregate;

        @Override
        public void open(OpenContext context) {
            aggregate =
                    getRuntimeContext()
                            .getState(
                                    new ValueStateDescriptor<>(
                                            "aggregate",
                                            InternalTypeInfo.ofFields(new BigIntType(), new BigIntType())));
        }

        @Override
        public void processElement(Tuple2<String, Long> row, Context context, Collector<String> out) throws Exception {
            RowData before = aggregate.value();
            long count = (before == null ? 0 : before.getLong(0)) + 1;
            long sum = (before == null ? 0 : before.getLong(1)) + row.f1;
            aggregate.update(GenericRowData.of(count, sum));
            out.collect(context.getCurrentKey() + " " + count + " " + sum);
        }
    }
}
