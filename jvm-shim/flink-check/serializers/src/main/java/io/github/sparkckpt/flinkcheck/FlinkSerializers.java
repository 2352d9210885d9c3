// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.BigDecSerializer;
import org.apache.flink.api.common.typeutils.base.BigIntSerializer;
import org.apache.flink.api.common.typeutils.base.BooleanSerializer;
import org.apache.flink.api.common.typeutils.base.ByteSerializer;
import org.apache.flink.api.common.typeutils.base.CharSerializer;
import org.apache.flink.api.common.typeutils.base.DateSerializer;
import org.apache.flink.api.common.typeutils.base.DoubleSerializer;
import org.apache.flink.api.common.typeutils.base.FloatSerializer;
import org.apache.flink.api.common.typeutils.base.InstantSerializer;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.LocalDateSerializer;
import org.apache.flink.api.common.typeutils.base.LocalDateTimeSerializer;
import org.apache.flink.api.common.typeutils.base.LocalTimeSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.common.typeutils.base.ShortSerializer;
import org.apache.flink.api.common.typeutils.base.SqlDateSerializer;
import org.apache.flink.api.common.typeutils.base.SqlTimeSerializer;
import org.apache.flink.api.common.typeutils.base.SqlTimestampSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.common.typeutils.base.array.BooleanPrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.CharPrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.DoublePrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.FloatPrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.IntPrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.LongPrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.ShortPrimitiveArraySerializer;
import org.apache.flink.api.common.typeutils.base.array.StringArraySerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.runtime.NullableSerializer;
import org.apache.flink.api.java.typeutils.runtime.RowSerializer;
import org.apache.flink.cep.nfa.ComputationState;
import org.apache.flink.cep.nfa.DeweyNumber;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.NFAStateSerializer;
import org.apache.flink.cep.nfa.sharedbuffer.EventId;
import org.apache.flink.cep.nfa.sharedbuffer.Lockable;
import org.apache.flink.cep.nfa.sharedbuffer.NodeId;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferEdge;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferNode;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferNodeSerializer;
import org.apache.flink.core.memory.DataOutputViewStreamWrapper;
import org.apache.flink.formats.avro.typeutils.AvroSerializer;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.operators.TimerHeapInternalTimer;
import org.apache.flink.streaming.api.operators.TimerSerializer;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.dataview.ListView;
import org.apache.flink.table.api.dataview.MapView;
import org.apache.flink.table.catalog.ObjectIdentifier;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.dataview.ListViewSerializer;
import org.apache.flink.table.dataview.MapViewSerializer;
import org.apache.flink.table.dataview.NullAwareMapSerializer;
import org.apache.flink.table.dataview.NullSerializer;
import org.apache.flink.table.runtime.operators.window.CountWindow;
import org.apache.flink.table.runtime.typeutils.ArrayDataSerializer;
import org.apache.flink.table.runtime.typeutils.BinaryRowDataSerializer;
import org.apache.flink.table.runtime.typeutils.DecimalDataSerializer;
import org.apache.flink.table.runtime.typeutils.ExternalSerializer;
import org.apache.flink.table.runtime.typeutils.LinkedListSerializer;
import org.apache.flink.table.runtime.typeutils.MapDataSerializer;
import org.apache.flink.table.runtime.typeutils.RawValueDataSerializer;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.runtime.typeutils.SortedMapSerializer;
import org.apache.flink.table.runtime.typeutils.StringDataSerializer;
import org.apache.flink.table.runtime.typeutils.TimestampDataSerializer;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.BinaryType;
import org.apache.flink.table.types.logical.BooleanType;
import org.apache.flink.table.types.logical.CharType;
import org.apache.flink.table.types.logical.DateType;
import org.apache.flink.table.types.logical.DayTimeIntervalType.DayTimeResolution;
import org.apache.flink.table.types.logical.DayTimeIntervalType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.DistinctType;
import org.apache.flink.table.types.logical.DoubleType;
import org.apache.flink.table.types.logical.FloatType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RawType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.SmallIntType;
import org.apache.flink.table.types.logical.StructuredType;
import org.apache.flink.table.types.logical.TimeType;
import org.apache.flink.table.types.logical.TimestampKind;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.TinyIntType;
import org.apache.flink.table.types.logical.VarBinaryType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.table.types.logical.YearMonthIntervalType.YearMonthResolution;
import org.apache.flink.table.types.logical.YearMonthIntervalType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Snapshot of each of Flink's serializers, and values with their bytes, hash and key group of 128: one line of JSON
 * each, on standard output. A hash that differs from one instance to the next is null.
 */
public final class FlinkSerializers {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final int KEY_GROUPS = 128;

    private static PrintStream out;

    /** Constants of an enum serializer. */
    public enum Colour {
        RED,
        GREEN
    }

    /** Class for the serializer of POJOs. */
    public static class Pojo {
        public int number;
    }

    /** POJO with fields of several types, one of them a POJO. */
    public static class Order {
        public String name;
        public Long amount;
        public Pojo inner;
        public List<Integer> parts;
        public Colour colour;
        public Instant at;

        static Order of(String name, Long amount, Integer inner, Integer... parts) {
            Order order = new Order();
            order.name = name;
            order.amount = amount;
            if (inner != null) {
                order.inner = new Pojo();
                order.inner.number = inner;
            }
            order.parts = List.of(parts);
            order.colour = Colour.GREEN;
            order.at = Instant.ofEpochSecond(3, 5);
            return order;
        }
    }

    private FlinkSerializers() {}

    public static void main(String[] arguments) throws IOException {
        out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        basicTypes();
        composites();
        logicalTypes();
        rows();
        nestedRows();
        nestedData();
        avro();
        windows();
        arrays();
        accumulators();
        patterns();
        out.flush();
    }

    private static void basicTypes() throws IOException {
        dump("boolean", BooleanSerializer.INSTANCE, true, false);
        dump("byte", ByteSerializer.INSTANCE, (byte) 1, Byte.MIN_VALUE);
        dump("short", ShortSerializer.INSTANCE, (short) 1, Short.MIN_VALUE);
        dump("int", IntSerializer.INSTANCE, 1, Integer.MIN_VALUE);
        dump("long", LongSerializer.INSTANCE, 1L, -1L, 1L << 40, Long.MIN_VALUE);
        dump("float", FloatSerializer.INSTANCE, 1.5f, -0.0f, 0.0f, Float.NaN, Float.NEGATIVE_INFINITY);
        dump("double", DoubleSerializer.INSTANCE, 1.5, -0.0, 0.0, Double.NaN, Double.NEGATIVE_INFINITY);
        dump("char", CharSerializer.INSTANCE, 'a', '\u20ac');
        dump("string", StringSerializer.INSTANCE, "", "a", "\u00e4\u540d\ud83d\ude00", "x".repeat(200), null);
        dump("bytes", BytePrimitiveArraySerializer.INSTANCE, (Object) new byte[] {1, 2});
        dump(
                "bigint",
                BigIntSerializer.INSTANCE,
                BigInteger.valueOf(-5),
                BigInteger.ZERO,
                BigInteger.ONE,
                BigInteger.TEN,
                BigInteger.TWO.pow(127),
                BigInteger.valueOf(-128),
                BigInteger.TWO.pow(64).negate(),
                null);
        dump(
                "bigdec",
                BigDecSerializer.INSTANCE,
                new BigDecimal("1.50"),
                new BigDecimal("1.5"),
                BigDecimal.ZERO,
                new BigDecimal("1E+7"),
                new BigDecimal("-123456789012345678901234.5"),
                null);
        dump("date", DateSerializer.INSTANCE, new java.util.Date(86_400_000L), null);
        dump("sqldate", SqlDateSerializer.INSTANCE, new java.sql.Date(-86_400_000L), null);
        dump("sqltime", SqlTimeSerializer.INSTANCE, new java.sql.Time(1234L), null);
        java.sql.Timestamp timestamp = new java.sql.Timestamp(1234L);
        timestamp.setNanos(234_567_890);
        dump("sqltimestamp", SqlTimestampSerializer.INSTANCE, timestamp, new java.sql.Timestamp(-1L), null);
        dump("instant", InstantSerializer.INSTANCE, Instant.ofEpochSecond(3, 5), Instant.ofEpochSecond(-3, 5), null);
        LocalDate leapDay = LocalDate.of(2024, 2, 29);
        LocalTime time = LocalTime.of(23, 2, 3, 4);
        dump("localdate", LocalDateSerializer.INSTANCE, leapDay, LocalDate.of(-44, 3, 15), LocalDate.MAX, null);
        dump("localtime", LocalTimeSerializer.INSTANCE, time, LocalTime.MIDNIGHT, null);
        dump("localdatetime", LocalDateTimeSerializer.INSTANCE, leapDay.atTime(time), LocalDateTime.MIN, null);
        dump("void", VoidNamespaceSerializer.INSTANCE, VoidNamespace.INSTANCE);
        dump("timewindow", new TimeWindow.Serializer(), new TimeWindow(-1000, 1000));
        dump("stringdata", StringDataSerializer.INSTANCE, StringData.fromString("h\u00e4"));
        dump("timestampdata(3)", new TimestampDataSerializer(3), TimestampData.fromEpochMillis(1234, 0));
        dump("timestampdata(6)", new TimestampDataSerializer(6), TimestampData.fromEpochMillis(-1, 567_000));
        dump("decimaldata(18,2)", new DecimalDataSerializer(18, 2), decimal("1.50", 18));
        dump("decimaldata(19,2)", new DecimalDataSerializer(19, 2), decimal("-1.50", 19));
    }

    private static void composites() throws IOException {
        dump("list<long>", new ListSerializer<>(LongSerializer.INSTANCE), List.of(1L, 2L), List.of());
        dump(
                "map<string,long>",
                new MapSerializer<>(StringSerializer.INSTANCE, LongSerializer.INSTANCE),
                Map.of("x", 7L),
                Collections.singletonMap("x", null));
        dump(
                "timer<string,void>",
                new TimerSerializer<>(StringSerializer.INSTANCE, VoidNamespaceSerializer.INSTANCE),
                new TimerHeapInternalTimer<>(1000L, "k", VoidNamespace.INSTANCE),
                new TimerHeapInternalTimer<>(-1L, "k", VoidNamespace.INSTANCE));
        dump(
                "tuple2<string,long>",
                serializer(new TypeHint<Tuple2<String, Long>>() {}.getTypeInfo()),
                Tuple2.of("a", 1L),
                Tuple2.of("", -1L));
        TypeSerializer<?> row =
                serializer(Types.ROW_NAMED(new String[] {"s", "l", "i"}, Types.STRING, Types.LONG, Types.INT));
        dump("row<string,long,int>", row, Row.of("a", 1L, null), Row.ofKind(RowKind.UPDATE_AFTER, null, 2L, 3));
        TypeSerializer<?>[] nine = new TypeSerializer<?>[9];
        Arrays.fill(nine, IntSerializer.INSTANCE);
        dump("row<9 ints>", new RowSerializer(nine), Row.of(1, null, 3, 4, 5, 6, null, 8, null));
        dump("enum", serializer(TypeInformation.of(Colour.class)), Colour.GREEN, Colour.RED);
        dump("nullable<long>", NullableSerializer.wrap(LongSerializer.INSTANCE, false), 5L, null);
        dump("padded<long>", NullableSerializer.wrap(LongSerializer.INSTANCE, true), 5L, null);
        dump("pojo", serializer(TypeInformation.of(Pojo.class)));
        dump(
                "pojo<order>",
                serializer(Types.POJO(Order.class, orderFields())),
                Order.of("a", 1L, 7, 1, 2),
                Order.of(null, null, null),
                null);
        dump("kryo", serializer(TypeInformation.of(UUID.class)));
    }

    private static void logicalTypes() throws IOException {
        List<LogicalType> types = new ArrayList<>(List.of(
                new BooleanType(),
                new TinyIntType(),
                new SmallIntType(),
                new IntType(),
                new BigIntType(),
                new BigIntType(false),
                new FloatType(),
                new DoubleType(),
                new DateType(),
                new CharType(3),
                new VarCharType(20),
                new VarCharType(VarCharType.MAX_LENGTH),
                new BinaryType(3),
                new VarBinaryType(VarBinaryType.MAX_LENGTH),
                new DecimalType(10, 2),
                new DecimalType(30, 2),
                new TimeType(3),
                new TimestampType(true, TimestampKind.ROWTIME, 3),
                new LocalZonedTimestampType(true, TimestampKind.PROCTIME, 3)));
        for (int precision = 0; precision <= 9; precision++) {
            types.add(new TimestampType(precision));
            types.add(new LocalZonedTimestampType(precision));
        }
        for (LogicalType type : types) {
            String kind =
                    type instanceof TimestampType timestamp
                            ? " " + timestamp.getKind()
                            : type instanceof LocalZonedTimestampType local ? " " + local.getKind() : "";
            dump("type " + type + kind, new RowDataSerializer(type));
        }
        for (LogicalType type : nestedTypes()) {
            dump("type " + type, new RowDataSerializer(type));
        }
        for (LogicalType type : intervals()) {
            dump("type " + type, new RowDataSerializer(type));
        }
        ObjectIdentifier name = ObjectIdentifier.of("catalog", "database", "distance");
        dump("type DISTINCT", new RowDataSerializer(DistinctType.newBuilder(name, new BigIntType()).build()));
    }

    private static List<LogicalType> intervals() {
        List<LogicalType> types = new ArrayList<>();
        for (YearMonthResolution resolution : YearMonthResolution.values()) {
            types.add(new YearMonthIntervalType(resolution));
        }
        for (DayTimeResolution resolution : DayTimeResolution.values()) {
            types.add(new DayTimeIntervalType(resolution));
        }
        types.add(new YearMonthIntervalType(false, YearMonthResolution.YEAR_TO_MONTH, 4));
        types.add(new DayTimeIntervalType(false, DayTimeResolution.DAY_TO_SECOND, 6, 9));
        return types;
    }

    private static List<LogicalType> nestedTypes() {
        LogicalType bigint = new BigIntType();
        LogicalType string = new VarCharType(VarCharType.MAX_LENGTH);
        LogicalType row = RowType.of(new LogicalType[] {new IntType(false), string}, new String[] {"id", "name"});
        return List.of(
                new ArrayType(bigint),
                new ArrayType(false, string.copy(false)),
                new ArrayType(new ArrayType(new IntType())),
                new MapType(string, bigint),
                new MapType(false, new IntType(), new ArrayType(string)),
                new MultisetType(string),
                row,
                new RowType(false, List.of(new RowType.RowField("a", new ArrayType(row), "described"))),
                new ArrayType(new TimestampType(6)),
                new MapType(string, new DecimalType(30, 2)));
    }

    private static void nestedRows() throws IOException {
        LogicalType string = new VarCharType(VarCharType.MAX_LENGTH);
        StringData shortText = StringData.fromString("ab");
        StringData longText = StringData.fromString("a longer string");
        RowDataSerializer numbers = new RowDataSerializer(
                new ArrayType(new BooleanType()),
                new ArrayType(new TinyIntType()),
                new ArrayType(new SmallIntType()),
                new ArrayType(new IntType()),
                new ArrayType(new BigIntType()),
                new ArrayType(new FloatType()),
                new ArrayType(new DoubleType()));
        dump(
                "rowdata<arrays of numbers>",
                numbers,
                binary(
                        numbers,
                        array(true, null, false),
                        array((byte) 1, null),
                        array((short) -1, (short) 2, null),
                        array(1, null, 3),
                        array(1L << 40, null),
                        array(1.5f, null),
                        array(-2.5)),
                binary(numbers, array(), null, null, null, null, null, array()));
        Object[] forty = new Object[40];
        Arrays.setAll(forty, number -> number % 3 == 0 ? null : number);
        RowDataSerializer ints = new RowDataSerializer(new ArrayType(new IntType()));
        dump("rowdata<array of 40 ints>", ints, binary(ints, array(forty)));
        RowType inner = RowType.of(new LogicalType[] {new IntType(), string}, new String[] {"id", "name"});
        RowDataSerializer nested = new RowDataSerializer(
                new ArrayType(string),
                new ArrayType(new DecimalType(30, 2)),
                new ArrayType(new TimestampType(6)),
                new ArrayType(new ArrayType(string)),
                new ArrayType(inner),
                inner,
                new VarBinaryType(VarBinaryType.MAX_LENGTH));
        dump(
                "rowdata<nested>",
                nested,
                binary(
                        nested,
                        array(shortText, null, longText),
                        array(decimal("-1.50", 30), null),
                        array(TimestampData.fromEpochMillis(-1234, 567_000), null),
                        array(array(longText), null, array()),
                        array(GenericRowData.of(1, longText), null, GenericRowData.of(null, shortText)),
                        GenericRowData.ofKind(RowKind.UPDATE_AFTER, 2, null),
                        new byte[] {1}),
                binary(nested, new Object[7]));
        RowDataSerializer ofIntervals = new RowDataSerializer(
                new ArrayType(new YearMonthIntervalType(YearMonthResolution.MONTH)),
                new MapType(string, new DayTimeIntervalType(DayTimeResolution.SECOND)));
        dump(
                "rowdata<nested intervals>",
                ofIntervals,
                binary(ofIntervals, array(14, null, -1), map(shortText, 1L << 40, longText, null)));
        RowDataSerializer maps = new RowDataSerializer(
                new MapType(string, new BigIntType()),
                new MapType(new IntType(), new ArrayType(string)),
                new MultisetType(string),
                new MapType(string, inner));
        dump(
                "rowdata<maps>",
                maps,
                binary(
                        maps,
                        map(shortText, 1L, longText, null),
                        map(7, array(longText, null)),
                        map(longText, 3),
                        map(shortText, GenericRowData.of(1, longText))),
                binary(maps, map(), null, null, null));
    }

    private static void nestedData() throws IOException {
        dump(
                "arraydata<bigint>",
                new ArrayDataSerializer(new BigIntType()),
                array(1L << 40, null),
                array());
        dump(
                "mapdata<int,bigint>",
                new MapDataSerializer(new IntType(), new BigIntType()),
                map(7, 1L, 8, null),
                map());
    }

    private static GenericArrayData array(Object... elements) {
        return new GenericArrayData(elements);
    }

    private static GenericMapData map(Object... pairs) {
        Map<Object, Object> content = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            content.put(pairs[i], pairs[i + 1]);
        }
        return new GenericMapData(content);
    }

    private static Map<String, TypeInformation<?>> orderFields() {
        Map<String, TypeInformation<?>> fields = new LinkedHashMap<>();
        fields.put("name", Types.STRING);
        fields.put("amount", Types.LONG);
        fields.put("inner", Types.POJO(Pojo.class));
        fields.put("parts", Types.LIST(Types.INT));
        fields.put("colour", Types.ENUM(Colour.class));
        fields.put("at", Types.INSTANT);
        return fields;
    }

    private static void avro() throws IOException {
        Schema schema = new Schema.Parser().parse(AVRO_SCHEMA);
        GenericData.Record record = new GenericData.Record(schema);
        record.put("s", "h\u00e4");
        record.put("i", -5);
        record.put("l", 1L << 40);
        record.put("f", 1.5f);
        record.put("d", -2.5);
        record.put("b", true);
        record.put("bytes", ByteBuffer.wrap(new byte[] {1, 2}));
        record.put("fixed", new GenericData.Fixed(schema.getField("fixed").schema(), new byte[] {3, 4, 5}));
        record.put("enum", new GenericData.EnumSymbol(schema.getField("enum").schema(), "GREEN"));
        record.put("optional", "here");
        record.put("several", 7L);
        record.put("array", List.of(1, 2, 3));
        record.put("map", Map.of("k", 1L));
        GenericData.Record nested = new GenericData.Record(schema.getField("nested").schema());
        nested.put("x", 9);
        record.put("nested", nested);
        record.put("millis", -1234L);
        record.put("micros", 1_234_567L);
        record.put("day", 19000);
        record.put("price", ByteBuffer.wrap(new BigDecimal("-1.50").unscaledValue().toByteArray()));
        GenericData.Record other = new GenericData.Record(record, true);
        other.put("optional", null);
        other.put("several", null);
        other.put("array", List.of());
        other.put("map", Map.of());
        dump("avro", new AvroSerializer<>(GenericRecord.class, schema), record, other);
    }

    private static void windows() throws IOException {
        dump(
                "sql timewindow",
                new org.apache.flink.table.runtime.operators.window.TimeWindow.Serializer(),
                new org.apache.flink.table.runtime.operators.window.TimeWindow(-1000, 1000));
        dump("sql countwindow", new CountWindow.Serializer(), new CountWindow(7));
        dumpValues("globalwindow", new GlobalWindow.Serializer(), GlobalWindow.get());
    }

    private static void arrays() throws IOException {
        dumpValues("boolean[]", BooleanPrimitiveArraySerializer.INSTANCE, (Object) new boolean[] {true, false});
        dumpValues("short[]", ShortPrimitiveArraySerializer.INSTANCE, (Object) new short[] {1, -2});
        dumpValues("int[]", IntPrimitiveArraySerializer.INSTANCE, (Object) new int[] {1, -2}, new int[0]);
        dumpValues("long[]", LongPrimitiveArraySerializer.INSTANCE, (Object) new long[] {1L << 40, -2});
        dumpValues("float[]", FloatPrimitiveArraySerializer.INSTANCE, (Object) new float[] {1.5f, -2.5f});
        dumpValues("double[]", DoublePrimitiveArraySerializer.INSTANCE, (Object) new double[] {1.5, -2.5});
        dumpValues("char[]", CharPrimitiveArraySerializer.INSTANCE, (Object) new char[] {'a', '\u20ac'});
        dumpValues("string[]", StringArraySerializer.INSTANCE, (Object) new String[] {"h\u00e4", null, ""});
    }

    private static void accumulators() throws IOException {
        dumpValues("sql null", NullSerializer.INSTANCE, (Object) null);
        dumpValues("external<string>", ExternalSerializer.of(DataTypes.STRING()), "h\u00e4");
        dumpValues(
                "external<row>",
                ExternalSerializer.of(DataTypes.ROW(
                        DataTypes.FIELD("id", DataTypes.BIGINT()),
                        DataTypes.FIELD("names", DataTypes.ARRAY(DataTypes.STRING())))),
                Row.of(1L, new String[] {"a", null}),
                Row.of(null, null));
        dumpValues(
                "external<timestamp>",
                ExternalSerializer.of(DataTypes.TIMESTAMP(6)),
                LocalDateTime.of(2024, 2, 29, 1, 2));
        dumpValues(
                "raw<string>",
                new RawValueDataSerializer<>(StringSerializer.INSTANCE),
                RawValueData.fromObject("h\u00e4"));
        dumpValues(
                "raw<kryo>",
                new RawValueDataSerializer<>(serializer(TypeInformation.of(UUID.class))),
                RawValueData.fromBytes(new byte[] {1, 2}));
        MapView<String, Long> mapView = new MapView<>();
        mapView.setMap(Map.of("x", 7L));
        MapSerializer<String, Long> map = new MapSerializer<>(StringSerializer.INSTANCE, LongSerializer.INSTANCE);
        dumpValues("mapview<string,long>", new MapViewSerializer<>(map), mapView);
        ListView<Long> listView = new ListView<>();
        listView.setList(List.of(1L, 2L));
        dumpValues("listview<long>", new ListViewSerializer<>(new ListSerializer<>(LongSerializer.INSTANCE)), listView);
        Map<String, Long> nulls = new LinkedHashMap<>();
        nulls.put(null, 1L);
        nulls.put("x", null);
        dumpValues(
                "nullawaremap<string,long>",
                new NullAwareMapSerializer<>(StringSerializer.INSTANCE, LongSerializer.INSTANCE),
                nulls);
        dumpValues(
                "linkedlist<long>",
                new LinkedListSerializer<>(LongSerializer.INSTANCE),
                new LinkedList<>(Arrays.asList(1L, null, 3L, 4L, 5L, 6L, 7L, 8L, null)),
                new LinkedList<Long>());
        dumpValues(
                "linkedlist<long> without nulls",
                new LinkedListSerializer<>(LongSerializer.INSTANCE, false),
                new LinkedList<>(List.of(1L, 2L)));
        TreeMap<Long, String> sorted = new TreeMap<>(Map.of(2L, "b", 1L, "a"));
        sorted.put(3L, null);
        dumpValues(
                "sortedmap<long,string>",
                new SortedMapSerializer<>(
                        Comparator.<Long>naturalOrder(), LongSerializer.INSTANCE, StringSerializer.INSTANCE),
                sorted);
        LogicalType raw = new RawType<>(String.class, StringSerializer.INSTANCE);
        LogicalType view = new RawType<>(MapView.class, (TypeSerializer) NullSerializer.INSTANCE);
        LogicalType structured = StructuredType.newBuilder(Order.class)
                .attributes(List.of(
                        new StructuredType.StructuredAttribute("amount", new BigIntType()),
                        new StructuredType.StructuredAttribute("view", view)))
                .build();
        RowDataSerializer accumulator = new RowDataSerializer(raw, structured, view, new ArrayType(raw));
        dump(
                "rowdata<accumulator>",
                accumulator,
                binary(
                        accumulator,
                        RawValueData.fromObject("a longer string"),
                        GenericRowData.of(5L, RawValueData.fromObject(mapView)),
                        RawValueData.fromObject(mapView),
                        null),
                binary(accumulator, null, null, null, null));
    }

    private static void patterns() throws IOException {
        EventId event = new EventId(1, 1000L);
        NodeId node = new NodeId(event, "first:0");
        DeweyNumber version = DeweyNumber.fromString("1.0.2");
        SharedBufferEdge edge = new SharedBufferEdge(node, version);
        SharedBufferNode links = new SharedBufferNode();
        links.addEdge(edge);
        links.addEdge(new SharedBufferEdge(null, version));
        dumpValues("deweynumber", DeweyNumber.DeweyNumberSerializer.INSTANCE, version);
        dumpValues("eventid", EventId.EventIdSerializer.INSTANCE, event);
        dumpValues("nodeid", new NodeId.NodeIdSerializer(), node, null);
        dumpValues("sharedbufferedge", new SharedBufferEdge.SharedBufferEdgeSerializer(), edge);
        dumpValues("sharedbuffernode", new SharedBufferNodeSerializer(), links);
        dumpValues(
                "lockable<string>",
                new Lockable.LockableTypeSerializer<>(StringSerializer.INSTANCE),
                new Lockable<>("h\u00e4", 2));
        Queue<ComputationState> partial = new LinkedList<>(List.of(
                ComputationState.createStartState("start"),
                ComputationState.createState("next", node, version, 1000L, 2000L, event)));
        dumpValues("nfastate", new NFAStateSerializer(), new NFAState(partial, new LinkedList<>()));
    }

    private static final String AVRO_SCHEMA =
            """
            {"type": "record", "name": "Everything", "namespace": "com.example", "fields": [
              {"name": "s", "type": "string"},
              {"name": "i", "type": "int"},
              {"name": "l", "type": "long"},
              {"name": "f", "type": "float"},
              {"name": "d", "type": "double"},
              {"name": "b", "type": "boolean"},
              {"name": "bytes", "type": "bytes"},
              {"name": "fixed", "type": {"type": "fixed", "name": "Three", "size": 3}},
              {"name": "enum", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}},
              {"name": "optional", "type": ["null", "string"]},
              {"name": "several", "type": ["null", "string", "long"]},
              {"name": "array", "type": {"type": "array", "items": "int"}},
              {"name": "map", "type": {"type": "map", "values": "long"}},
              {"name": "nested", "type": {"type": "record", "name": "Nested", "fields": [
                {"name": "x", "type": "int"}]}},
              {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
              {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
              {"name": "day", "type": {"type": "int", "logicalType": "date"}},
              {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}
            ]}
            """;

    private static void rows() throws IOException {
        RowDataSerializer two = new RowDataSerializer(new VarCharType(VarCharType.MAX_LENGTH), new BigIntType());
        dump(
                "rowdata<string,bigint>",
                two,
                binary(two, StringData.fromString("ab"), 5L),
                binary(two, StringData.fromString("1234567"), 5L),
                binary(two, StringData.fromString("12345678"), 5L),
                binary(two, StringData.fromString("a longer string"), -5L),
                binary(two, StringData.fromString("\u00e4\u540d"), null),
                binary(two, null, 9L),
                binary(two, StringData.fromString(""), 0L));
        LogicalType[] all = {
            new BooleanType(),
            new TinyIntType(),
            new SmallIntType(),
            new IntType(),
            new BigIntType(),
            new FloatType(),
            new DoubleType(),
            new DateType(),
            new TimeType(3),
            new CharType(3),
            new VarBinaryType(VarBinaryType.MAX_LENGTH),
            new DecimalType(18, 2),
            new DecimalType(19, 2),
            new DecimalType(38, 0),
            new TimestampType(3),
            new TimestampType(6),
            new LocalZonedTimestampType(9)
        };
        RowDataSerializer wide = new RowDataSerializer(all);
        dump(
                "rowdata<all>",
                wide,
                binary(
                        wide,
                        true,
                        (byte) -5,
                        (short) -4,
                        2,
                        1L << 40,
                        0.5f,
                        2.5,
                        19000,
                        1234,
                        StringData.fromString("abc"),
                        new byte[] {1, 2, 3, 4, 5, 6, 7, 8, 9},
                        decimal("1.50", 18),
                        decimal("-1.50", 19),
                        DecimalData.fromBigDecimal(new BigDecimal("9".repeat(38)), 38, 0),
                        TimestampData.fromEpochMillis(-1234),
                        TimestampData.fromEpochMillis(-1234, 567_000),
                        TimestampData.fromEpochMillis(1234, 999_999)),
                binary(wide, new Object[all.length]));
        LogicalType months = new YearMonthIntervalType(YearMonthResolution.YEAR_TO_MONTH);
        LogicalType millis = new DayTimeIntervalType(DayTimeResolution.DAY_TO_SECOND);
        RowDataSerializer intervals = new RowDataSerializer(months, millis);
        dump(
                "rowdata<intervals>",
                intervals,
                binary(intervals, 14, 90_061_001L),
                binary(intervals, -14, -90_061_001L),
                binary(intervals, null, null));
        LogicalType[] many = new LogicalType[60];
        Arrays.fill(many, new IntType());
        RowDataSerializer sixty = new RowDataSerializer(many);
        Object[] numbers = new Object[many.length];
        Arrays.setAll(numbers, number -> number % 3 == 0 ? null : number);
        dump("rowdata<60 ints>", sixty, binary(sixty, numbers));
        GenericRowData retraction = GenericRowData.ofKind(RowKind.DELETE, StringData.fromString("ab"), 5L);
        dump("rowdata<-D>", two, two.toBinaryRow(retraction).copy());
        dump("binaryrow(2)", new BinaryRowDataSerializer(2), binary(two, StringData.fromString("ab"), 5L));
    }

    private static Object binary(RowDataSerializer serializer, Object... fields) {
        return serializer.toBinaryRow(GenericRowData.of(fields)).copy();
    }

    private static DecimalData decimal(String number, int precision) {
        return DecimalData.fromBigDecimal(new BigDecimal(number), precision, 2);
    }

    private static TypeSerializer<?> serializer(TypeInformation<?> type) {
        return type.createSerializer(new SerializerConfigImpl());
    }

    private static void dump(String name, TypeSerializer<?> serializer, Object... values) throws IOException {
        dump(name, true, serializer, values);
    }

    /** Dumps values that are no keys: their hash may differ from one instance to the next. */
    private static void dumpValues(String name, TypeSerializer<?> serializer, Object... values) throws IOException {
        dump(name, false, serializer, values);
    }

    @SuppressWarnings("unchecked")
    private static void dump(String name, boolean areKeys, TypeSerializer<?> serializer, Object... values)
            throws IOException {
        TypeSerializerSnapshot<?> snapshot = serializer.snapshotConfiguration();
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("name", name);
        line.put("class", snapshot.getClass().getName());
        line.put("length", serializer.getLength());
        line.put(
                "snapshot",
                written(view -> TypeSerializerSnapshot.writeVersionedSnapshot(view, snapshot)));
        List<Object> lines = new ArrayList<>();
        for (Object value : values) {
            Map<String, Object> described = new LinkedHashMap<>();
            described.put("text", text(value));
            described.put("bytes", written(view -> ((TypeSerializer<Object>) serializer).serialize(value, view)));
            boolean isKey = areKeys
                    && value != null
                    && !(value instanceof byte[] || value instanceof Enum<?> || value instanceof Order);
            described.put("hash", isKey ? value.hashCode() : null);
            described.put(
                    "keyGroup", isKey ? KeyGroupRangeAssignment.assignToKeyGroup(value, KEY_GROUPS) : null);
            lines.add(described);
        }
        line.put("values", lines);
        out.println(JSON.writeValueAsString(line));
    }

    private static String text(Object value) {
        if (value instanceof byte[] bytes) {
            return HEX.formatHex(bytes);
        }
        if (value != null && value.getClass().isArray()) {
            return value.getClass().getComponentType() + " " + Array.getLength(value);
        }
        if (value instanceof MapView<?, ?> || value instanceof ListView<?> || value instanceof RawValueData<?>) {
            return value.getClass().getSimpleName();
        }
        return value instanceof Order order ? "Order " + order.name : String.valueOf(value);
    }

    private interface Writing {
        void write(DataOutputViewStreamWrapper view) throws IOException;
    }

    private static String written(Writing writing) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        writing.write(new DataOutputViewStreamWrapper(bytes));
        return HEX.formatHex(bytes.toByteArray());
    }
}
