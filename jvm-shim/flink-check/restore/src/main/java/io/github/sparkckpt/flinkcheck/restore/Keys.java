// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.util.Arrays;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.VarCharType;

/** Keys of each type, from JSON and as JSON: a string, a number, or an array of both for rows and tuples. */
final class Keys {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final RowType ROW =
            RowType.of(
                    new LogicalType[] {new VarCharType(VarCharType.MAX_LENGTH), new BigIntType()},
                    new String[] {"s", "l"});

    private Keys() {}

    static TypeInformation<?> typeOf(String kind) {
        switch (kind) {
            case "string":
                return Types.STRING;
            case "long":
                return Types.LONG;
            case "int":
                return Types.INT;
            case "row":
                return InternalTypeInfo.of(ROW);
            case "tuple":
                return Types.TUPLE(Types.STRING, Types.LONG);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    static Object read(String kind, String json) throws JsonProcessingException {
        JsonNode key = JSON.readTree(json);
        switch (kind) {
            case "string":
                return key.textValue();
            case "long":
                return key.longValue();
            case "int":
                return key.intValue();
            case "row":
                StringData text = key.get(0).isNull() ? null : StringData.fromString(key.get(0).textValue());
                Long number = key.get(1).isNull() ? null : key.get(1).longValue();
                return new RowDataSerializer(ROW).toBinaryRow(GenericRowData.of(text, number)).copy();
            case "tuple":
                return Tuple2.of(key.get(0).textValue(), key.get(1).longValue());
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    static Object plain(Object key) {
        if (key instanceof RowData) {
            RowData row = (RowData) key;
            return Arrays.asList(
                    row.isNullAt(0) ? null : row.getString(0).toString(), row.isNullAt(1) ? null : row.getLong(1));
        }
        if (key instanceof Tuple2) {
            Tuple2<?, ?> tuple = (Tuple2<?, ?>) key;
            return Arrays.asList(tuple.f0, tuple.f1);
        }
        return key;
    }

    static String json(Object... values) throws JsonProcessingException {
        return JSON.writeValueAsString(values);
    }
}
