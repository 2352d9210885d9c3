// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.kafka;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * KafkaJob SERVERS TOPIC SAVEPOINT UID PARALLELISM NUMBER: a {@link KafkaSource} with this uid restores the savepoint
 * and reads the topic. Prints partition and offset of each record, until that number of records have come, and any that
 * come within the seconds after it. Without state, the source would begin at the earliest offsets.
 */
public final class KafkaJob {

    private KafkaJob() {}

    public static void main(String[] arguments) throws Exception {
        int parallelism = Integer.parseInt(arguments[4]);
        int number = Integer.parseInt(arguments[5]);
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(arguments[0])
                        .setTopics(arguments[1])
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setProperty("partition.discovery.interval.ms", "500")
                        .setDeserializer(new Position())
                        .build();
        Restored.print(
                Restored.environment(arguments[2], parallelism, true)
                        .fromSource(source, WatermarkStrategy.noWatermarks(), "source")
                        .uid(arguments[3])
                        .executeAndCollect(),
                number);
    }

    /** Partition and offset of a record. */
    static final class Position implements KafkaRecordDeserializationSchema<String> {

        private static final long serialVersionUID = 1L;

        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String> out) {
            out.collect(record.partition() + " " + record.offset());
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return Types.STRING;
        }
    }
}
