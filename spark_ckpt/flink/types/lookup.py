"""Record of each serializer's type: a line for each class of serializers in `_MAKERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from spark_ckpt.flink.streams.types import accumulators, cep, composites, row_data
from spark_ckpt.flink.streams.types.avro import AvroSerializer
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.binary_row import types_of_map
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.streams.types.logical_types import NUMBER_CODES, STRUCTURED, LogicalType
from spark_ckpt.flink.streams.types.pojo import PojoSerializer
from spark_ckpt.flink.types.arrow import (
    MILLIS,
    STRING,
    list_type,
    map_type,
    named_type,
    opaque_type,
    row_type,
    timestamp_type,
    tuple_type,
)
from spark_ckpt.flink.types.avro import avro_type
from spark_ckpt.flink.types.composites import write_enum, write_list, write_map, write_nullable, write_pojo, write_row
from spark_ckpt.flink.types.record import ArrowType, FlinkType, Write
from spark_ckpt.flink.types.row_reader import row_data_reader
from spark_ckpt.flink.types.row_writer import row_data_writer
from spark_ckpt.flink.types.scalars import SCALARS, read_millis, struct_reader, struct_writer, write_millis
from spark_ckpt.flink.types.sql_values import write_decimals, write_timestamps

_SCALARS = {scalar.serializer.snapshot_class: scalar for scalar in SCALARS}


def flink_type(serializer: Serializer) -> FlinkType:
    """Type of a serializer. Values of a serializer with an unknown class are bytes."""
    if serializer.is_opaque:
        return FlinkType(serializer, opaque_type(str(serializer)))
    if (scalar := _SCALARS.get(serializer.snapshot_class)) is not None:
        return scalar
    make = _MAKERS.get(type(serializer))
    return FlinkType(serializer, ArrowType(pa.binary())) if make is None else make(serializer)


def arrow_type(serializer: Serializer) -> ArrowType:
    """Arrow type of a serializer's values."""
    return flink_type(serializer).arrow


def writer_of(serializer: Serializer, *, codegen: bool = False) -> Write:
    """Writer of a serializer's values.

    Args:
        serializer: a serializer that passes `spark_ckpt.flink.export.check.check`.
        codegen: True if generated code of Flink SQL makes the values, where they are rows.
    """
    if codegen and isinstance(serializer, row_data.RowDataSerializer):
        return row_data_writer(serializer, codegen=True)
    return flink_type(serializer).encode


def _parts(serializer: Serializer) -> list[ArrowType]:
    return [arrow_type(part) for part in serializer.nested]


def _as_part(serializer: Serializer) -> FlinkType:
    return FlinkType(serializer, _parts(serializer)[0])


def _external(serializer: accumulators.ExternalSerializer) -> FlinkType:
    return replace(flink_type(serializer.parts[0]), serializer=serializer, write=None, java=None)


def _nullable(serializer: composites.NullableSerializer) -> FlinkType:
    part = flink_type(serializer.parts[0])
    return FlinkType(serializer, part.arrow, write=lambda array: write_nullable(part.encode, serializer.padding, array))


def _list(serializer: composites.ListSerializer) -> FlinkType:
    element = flink_type(serializer.parts[0])
    return FlinkType(serializer, list_type(element.arrow), write=lambda array: write_list(element.encode, array))


def _map(serializer: composites.MapSerializer) -> FlinkType:
    key, value = map(flink_type, serializer.parts)
    return FlinkType(
        serializer,
        map_type(key.arrow, value.arrow),
        write=lambda array: write_map(key.encode, value.encode, array),
    )


def _tuple(serializer: composites.TupleSerializer) -> FlinkType:
    parts = [flink_type(part) for part in serializer.parts]
    arrow = tuple_type([part.arrow for part in parts])
    # The hash of a class of the user's is its own.
    read = struct_reader(
        [part.read for part in parts], arrow.type, hashed=serializer == composites.TupleSerializer.of(*serializer.parts)
    )
    return FlinkType(serializer, arrow, read, struct_writer([part.encode for part in parts], hashed=True))


def _ttl(serializer: composites.TtlSerializer) -> FlinkType:
    value = flink_type(serializer.parts[1])
    arrow = named_type(("last_access", MILLIS), ("value", value.arrow))
    read = struct_reader([read_millis, value.read], arrow.type)
    return FlinkType(serializer, arrow, read, struct_writer([write_millis, value.encode]))


def _row(serializer: composites.RowSerializer) -> FlinkType:
    parts = [flink_type(part) for part in serializer.parts]
    return FlinkType(
        serializer,
        row_type([part.arrow for part in parts]),
        write=lambda array: write_row(serializer, [part.encode for part in parts], array),
    )


def _pojo(serializer: PojoSerializer) -> FlinkType:
    parts = [flink_type(part) for part in serializer.nested]
    return FlinkType(
        serializer,
        named_type(*[(field.name, part.arrow) for field, part in zip(serializer.fields, parts, strict=True)]),
        write=lambda array: write_pojo([part.encode for part in parts], array),
    )


def _enum(serializer: EnumSerializer) -> FlinkType:
    return FlinkType(serializer, STRING, write=lambda array: write_enum(serializer, array))


def _row_data(serializer: row_data.RowDataSerializer) -> FlinkType:
    arrow = row_type([sql_type(kind) for kind in serializer.types])
    return FlinkType(serializer, arrow, row_data_reader(serializer, arrow.type), row_data_writer(serializer))


def _decimal(serializer: row_data.DecimalDataSerializer) -> FlinkType:
    arrow = ArrowType(pa.decimal128(serializer.precision, serializer.scale))
    return FlinkType(serializer, arrow, write=lambda array: write_decimals(array, serializer.precision))


def _timestamp(serializer: row_data.TimestampDataSerializer) -> FlinkType:
    arrow = timestamp_type(serializer.precision, None)
    return FlinkType(serializer, arrow, write=lambda array: write_timestamps(array, serializer.precision))


def _avro(serializer: AvroSerializer) -> FlinkType:
    return FlinkType(serializer, ArrowType(pa.binary()) if serializer.type is None else avro_type(serializer.type))


def _matches(serializer: cep.NFAStateSerializer) -> FlinkType:
    version, node, event = _parts(serializer)
    match = named_type(
        ("state", STRING),
        ("previous", node),
        ("version", version),
        ("start_timestamp", MILLIS),
        ("previous_timestamp", MILLIS),
        ("start_event", event),
    )
    return FlinkType(
        serializer, named_type(("partial_matches", list_type(match)), ("completed_matches", list_type(match)))
    )


def _read_only(arrow: Callable[..., ArrowType]) -> Callable[[Any], FlinkType]:
    """Maker of types whose values are only read, one by one; `arrow` takes the Arrow types of the parts."""
    return lambda serializer: FlinkType(serializer, arrow(*_parts(serializer)))


_REFERENCES = ("references", ArrowType(pa.int32()))
_MAKERS: dict[type[Serializer], Callable[[Any], FlinkType]] = {
    composites.NullableSerializer: _nullable,
    accumulators.ExternalSerializer: _external,
    accumulators.RawValueSerializer: _as_part,
    accumulators.MapViewSerializer: _as_part,
    accumulators.ListViewSerializer: _as_part,
    composites.ListSerializer: _list,
    accumulators.LinkedListSerializer: _read_only(list_type),
    composites.MapSerializer: _map,
    accumulators.SortedMapSerializer: _read_only(map_type),
    # A key may be null, unlike those of maps in Arrow.
    accumulators.NullAwareMapSerializer: _read_only(
        lambda key, value: list_type(named_type(("key", key), ("value", value)))
    ),
    composites.TupleSerializer: _tuple,
    composites.RowSerializer: _row,
    composites.TtlSerializer: _ttl,
    composites.TimerSerializer: _read_only(
        lambda key, namespace: named_type(("timestamp", MILLIS), ("key", key), ("namespace", namespace))
    ),
    EnumSerializer: _enum,
    PojoSerializer: _pojo,
    AvroSerializer: _avro,
    row_data.RowDataSerializer: _row_data,
    row_data.DecimalDataSerializer: _decimal,
    row_data.TimestampDataSerializer: _timestamp,
    row_data.ArrayDataSerializer: lambda serializer: FlinkType(serializer, list_type(sql_type(serializer.element))),
    row_data.MapDataSerializer: lambda serializer: FlinkType(
        serializer, map_type(sql_type(serializer.key), sql_type(serializer.value))
    ),
    cep.NodeIdSerializer: _read_only(lambda event_id: named_type(("event_id", event_id), ("page", STRING))),
    cep.SharedBufferEdgeSerializer: _read_only(
        lambda target, version: named_type(("target", target), ("version", version))
    ),
    cep.SharedBufferNodeSerializer: _read_only(lambda edge: list_type(named_type(_REFERENCES, ("value", edge)))),
    cep.LockableSerializer: _read_only(lambda value: named_type(_REFERENCES, ("value", value))),
    cep.NFAStateSerializer: _matches,
}

# ---- types of Flink SQL ----------------------------------------------------------------------------------------------

_SQL = {
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    **{root: pa.from_numpy_dtype(np.dtype(code)) for root, code in NUMBER_CODES.items()},
    "DATE": pa.date32(),
    "TIME_WITHOUT_TIME_ZONE": pa.time32("ms"),
}


def sql_type(kind: LogicalType) -> ArrowType:
    """Arrow type of a type of Flink SQL."""
    if (simple := _SQL.get(kind.root)) is not None:
        return ArrowType(simple)
    if kind.root == "DECIMAL":
        return ArrowType(pa.decimal128(*kind.parameters))
    if kind.root == "ARRAY":
        return list_type(sql_type(kind.children[0]))
    if kind.root in ("MAP", "MULTISET"):
        return map_type(*map(sql_type, types_of_map(kind)))
    if kind.root == "RAW":
        return opaque_type(kind.class_name) if kind.raw is None or kind.raw.is_opaque else arrow_type(kind.raw)
    if kind.root in ("ROW", STRUCTURED):
        fields = named_type(*zip(kind.names, map(sql_type, kind.children), strict=True))
        return ArrowType(fields.type, lambda value: fields.of(value.fields))
    return timestamp_type(kind.parameters[0], "UTC" if kind.root == "TIMESTAMP_WITH_LOCAL_TIME_ZONE" else None)
