// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.api.java.typeutils.runtime.TupleSerializer;
import org.apache.flink.cep.nfa.ComputationState;
import org.apache.flink.cep.nfa.DeweyNumber;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.sharedbuffer.EventId;
import org.apache.flink.cep.nfa.sharedbuffer.Lockable;
import org.apache.flink.cep.nfa.sharedbuffer.NodeId;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferEdge;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferNode;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.ttl.TtlStateFactory.TtlSerializer;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.streaming.api.operators.TimerHeapInternalTimer;
import org.apache.flink.streaming.api.operators.TimerSerializer;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.operators.window.TimeWindow;
import org.apache.flink.table.runtime.typeutils.ArrayDataSerializer;
import org.apache.flink.table.runtime.typeutils.ExternalSerializer;
import org.apache.flink.table.runtime.typeutils.InternalSerializers;
import org.apache.flink.table.runtime.typeutils.LinkedListSerializer;
import org.apache.flink.table.runtime.typeutils.MapDataSerializer;
import org.apache.flink.table.runtime.typeutils.RawValueDataSerializer;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.runtime.typeutils.SortedMapSerializer;
import org.apache.flink.table.types.logical.LogicalType;

/** Values as lists, numbers and text. */
final class Plain {

    private static final HexFormat HEX = HexFormat.of();

    private Plain() {}

    /** A value of a serializer. */
    @SuppressWarnings("unchecked")
    static Object of(Object value, TypeSerializer<?> serializer) throws Exception {
        if (value == null) {
            return null;
        }
        if (serializer instanceof RowDataSerializer) {
            return row((RowData) value, (LogicalType[]) field(serializer, "types"));
        }
        if (serializer instanceof ExternalSerializer) {
            DataOutputSerializer out = new DataOutputSerializer(64);
            ((TypeSerializer<Object>) serializer).serialize(value, out);
            TypeSerializer<?> internal = (TypeSerializer<?>) field(serializer, "internalSerializer");
            return of(internal.deserialize(new DataInputDeserializer(out.getCopyOfBuffer())), internal);
        }
        if (serializer instanceof RawValueDataSerializer) {
            TypeSerializer<Object> inner = ((RawValueDataSerializer<Object>) serializer).getInnerSerializer();
            return of(((RawValueData<Object>) value).toObject(inner), inner);
        }
        if (serializer instanceof ArrayDataSerializer) {
            return array((ArrayData) value, (LogicalType) field(serializer, "eleType"));
        }
        if (serializer instanceof MapDataSerializer) {
            return map((MapData) value, (LogicalType) field(serializer, "keyType"), (LogicalType)
                    field(serializer, "valueType"));
        }
        if (serializer instanceof ListSerializer) {
            return items((Collection<?>) value, ((ListSerializer<?>) serializer).getElementSerializer());
        }
        if (serializer instanceof LinkedListSerializer) {
            return items((Collection<?>) value, ((LinkedListSerializer<?>) serializer).getElementSerializer());
        }
        if (serializer instanceof MapSerializer) {
            MapSerializer<?, ?> map = (MapSerializer<?, ?>) serializer;
            return pairs((Map<?, ?>) value, map.getKeySerializer(), map.getValueSerializer());
        }
        if (serializer instanceof SortedMapSerializer) {
            SortedMapSerializer<?, ?> map = (SortedMapSerializer<?, ?>) serializer;
            return pairs((Map<?, ?>) value, map.getKeySerializer(), map.getValueSerializer());
        }
        if (serializer instanceof TupleSerializer) {
            TypeSerializer<?>[] parts = ((TupleSerializer<?>) serializer).getFieldSerializers();
            List<Object> found = new ArrayList<>();
            for (int part = 0; part < parts.length; part++) {
                found.add(of(((Tuple) value).getField(part), parts[part]));
            }
            return found;
        }
        if (serializer instanceof TimerSerializer) {
            TimerSerializer<?, ?> timer = (TimerSerializer<?, ?>) serializer;
            TimerHeapInternalTimer<?, ?> found = (TimerHeapInternalTimer<?, ?>) value;
            return Arrays.asList(
                    found.getTimestamp(),
                    of(found.getKey(), (TypeSerializer<?>) field(timer, "keySerializer")),
                    of(found.getNamespace(), (TypeSerializer<?>) field(timer, "namespaceSerializer")));
        }
        if (serializer instanceof TtlSerializer) {
            TtlValue<?> found = (TtlValue<?>) value;
            TypeSerializer<?> inner = (TypeSerializer<?>) call(serializer, "getValueSerializer");
            return Arrays.asList(found.getLastAccessTimestamp(), of(found.getUserValue(), inner));
        }
        if (value instanceof Lockable<?> lockable) {
            TypeSerializer<?> inner = (TypeSerializer<?>) field(serializer, "elementSerializer");
            return Arrays.asList(call(lockable, "getRefCounter"), of(lockable.getElement(), inner));
        }
        return simple(value);
    }

    private static Object simple(Object value) throws Exception {
        if (value == null || value instanceof VoidNamespace) {
            return null;
        }
        if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            return Double.isFinite(number) ? number : String.valueOf(number);
        }
        if (value instanceof Number || value instanceof Boolean || value instanceof String) {
            return value;
        }
        if (value instanceof byte[] bytes) {
            return HEX.formatHex(bytes);
        }
        if (value instanceof StringData) {
            return value.toString();
        }
        if (value instanceof DecimalData decimal) {
            return decimal.toBigDecimal().toPlainString();
        }
        if (value instanceof TimestampData timestamp) {
            return List.of(timestamp.getMillisecond(), timestamp.getNanoOfMillisecond());
        }
        if (value instanceof TimeWindow window) {
            return List.of(window.getStart(), window.getEnd());
        }
        if (value instanceof EventId event) {
            return List.of(event.getId(), event.getTimestamp());
        }
        if (value instanceof NodeId node) {
            return Arrays.asList(simple(node.getEventId()), node.getPageName());
        }
        if (value instanceof DeweyNumber version) {
            List<Object> digits = new ArrayList<>();
            for (String digit : version.toString().split("\\.")) {
                digits.add(Integer.valueOf(digit));
            }
            return digits;
        }
        if (value instanceof SharedBufferEdge edge) {
            return Arrays.asList(simple(call(edge, "getTarget")), simple(call(edge, "getDeweyNumber")));
        }
        if (value instanceof SharedBufferNode node) {
            List<Object> edges = new ArrayList<>();
            for (Lockable<SharedBufferEdge> edge : node.getEdges()) {
                edges.add(Arrays.asList(call(edge, "getRefCounter"), simple(edge.getElement())));
            }
            return edges;
        }
        if (value instanceof NFAState state) {
            return List.of(matches(state.getPartialMatches()), matches(state.getCompletedMatches()));
        }
        throw new IllegalArgumentException("no plain form of " + value.getClass());
    }

    private static List<Object> matches(Collection<ComputationState> states) throws Exception {
        List<Object> found = new ArrayList<>();
        for (ComputationState state : states) {
            found.add(Arrays.asList(
                    state.getCurrentStateName(),
                    simple(state.getPreviousBufferEntry()),
                    simple(state.getVersion()),
                    state.getStartTimestamp(),
                    state.getPreviousTimestamp(),
                    simple(state.getStartEventID())));
        }
        return found;
    }

    private static List<Object> row(RowData row, LogicalType[] types) throws Exception {
        List<Object> fields = new ArrayList<>();
        for (int field = 0; field < types.length; field++) {
            // Fields of NOT NULL types may be null all the same, such as attributes of processing time.
            boolean isNull = row.isNullAt(field);
            Object value = isNull ? null : RowData.createFieldGetter(types[field], field).getFieldOrNull(row);
            fields.add(of(value, InternalSerializers.create(types[field])));
        }
        return List.of((int) row.getRowKind().toByteValue(), fields);
    }

    private static List<Object> array(ArrayData array, LogicalType type) throws Exception {
        ArrayData.ElementGetter getter = ArrayData.createElementGetter(type);
        TypeSerializer<?> element = InternalSerializers.create(type);
        List<Object> found = new ArrayList<>();
        for (int index = 0; index < array.size(); index++) {
            found.add(of(getter.getElementOrNull(array, index), element));
        }
        return found;
    }

    private static List<Object> map(MapData map, LogicalType keyType, LogicalType valueType) throws Exception {
        List<Object> keys = array(map.keyArray(), keyType);
        List<Object> values = array(map.valueArray(), valueType);
        List<Object> found = new ArrayList<>();
        for (int index = 0; index < keys.size(); index++) {
            found.add(Arrays.asList(keys.get(index), values.get(index)));
        }
        return found;
    }

    private static List<Object> items(Collection<?> items, TypeSerializer<?> serializer) throws Exception {
        List<Object> found = new ArrayList<>();
        for (Object item : items) {
            found.add(of(item, serializer));
        }
        return found;
    }

    private static List<Object> pairs(Map<?, ?> map, TypeSerializer<?> keys, TypeSerializer<?> values)
            throws Exception {
        List<Object> found = new ArrayList<>();
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            found.add(Arrays.asList(of(entry.getKey(), keys), of(entry.getValue(), values)));
        }
        return found;
    }

    private static Object field(Object object, String name) throws ReflectiveOperationException {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    private static Object call(Object object, String name) throws ReflectiveOperationException {
        Method method = object.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(object);
    }
}
