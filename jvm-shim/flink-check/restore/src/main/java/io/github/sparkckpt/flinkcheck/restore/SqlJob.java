// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Job of Flink SQL that restores {@code accState} of the aggregate with the uid {@code sql_group-aggregate}: changes of
 * {@code query} over the table {@code t (s STRING, l BIGINT, ts TIMESTAMP(6), v BIGINT)}, whose rows are {@code input}.
 */
final class SqlJob {

    private SqlJob() {}

    static List<String> run(JsonNode request) throws Exception {
        StreamExecutionEnvironment environment = Environment.restoring(request);
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.getConfig().set("table.exec.uid.generation", "ALWAYS");
        tables.getConfig().set("table.exec.uid.format", "sql_<transformation>");
        List<Row> rows = new ArrayList<>();
        for (JsonNode row : request.get("input")) {
            rows.add(
                    Row.of(
                            row.get(0).textValue(),
                            row.get(1).isNull() ? null : row.get(1).longValue(),
                            row.get(2).isNull() ? null : LocalDateTime.parse(row.get(2).textValue()),
                            row.get(3).longValue()));
        }
        tables.createTemporaryView(
                "t",
                environment
                        .fromCollection(
                                rows,
                                Types.ROW_NAMED(
                                        new String[] {"s", "l", "ts", "v"},
                                        Types.STRING,
                                        Types.LONG,
                                        Types.LOCAL_DATE_TIME,
                                        Types.LONG))
                        .uid("source"),
                Schema.newBuilder()
                        .column("s", "STRING")
                        .column("l", "BIGINT")
                        .column("ts", "TIMESTAMP(6)")
                        .column("v", "BIGINT")
                        .build());
        return Environment.all(
                tables.toChangelogStream(tables.sqlQuery(request.get("query").asText())).executeAndCollect());
    }
}
