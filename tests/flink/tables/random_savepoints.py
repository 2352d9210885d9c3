"""Random savepoints of Flink: types, keys and values, with the edges of each type."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from spark_ckpt.flink.export.model import FlinkOperator, FlinkState, StateKind
from spark_ckpt.flink.export.writer import write_savepoint
from spark_ckpt.flink.streams import Serializer
from spark_ckpt.flink.streams.types import primitives, text
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.logical_types import MAX_LENGTH, REGULAR, LogicalType
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.storage import LocalStorage

_TEXTS = ("", "a", "ab" * 63, *("x" * n for n in (7, 8, 126, 127, 128)), "ü", "😀", "\0", "a\0b", "é" * 4)
_FRACTIONS = (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5, -1e300, 5e-324)
_SHORT_FRACTIONS = (0.0, -0.0, 1.5, float("nan"), float("inf"))
_MICROS = (0, -1, 1, -62_135_596_800_000_000, 253_402_300_799_999_999, -1001, 999)
_EXACT = decimal.Context(prec=60)
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_TYPES = (
    *(LogicalType(root) for root in (*_BITS, "BOOLEAN", "DOUBLE", "FLOAT", "DATE")),
    LogicalType("VARCHAR", (MAX_LENGTH,)),
    LogicalType("VARBINARY", (MAX_LENGTH,)),
    *(LogicalType("DECIMAL", parameters) for parameters in ((10, 2), (18, 0), (19, 4), (38, 18))),
    LogicalType("TIME_WITHOUT_TIME_ZONE", (3,)),
    *(LogicalType("TIMESTAMP_WITHOUT_TIME_ZONE", (digits,), True, REGULAR) for digits in (3, 6, 9)),
    LogicalType("TIMESTAMP_WITH_LOCAL_TIME_ZONE", (6,), True, REGULAR),
)
_LEAVES = (
    primitives.BOOLEAN,
    primitives.BYTE,
    primitives.SHORT,
    primitives.INT,
    primitives.LONG,
    primitives.DOUBLE,
    primitives.FLOAT,
    primitives.BYTES,
    text.STRING,
)
_MIN_COLUMNS, _MAX_COLUMNS = 5, 69


class RandomSavepoint(NamedTuple):
    """A savepoint, and what was written into it.

    Args:
        path: its directory.
        kind: kind of its state `s`.
        written: columns `key`, `map_key` for a map, and `value`.
        description: types, for messages.
    """

    path: Path
    kind: StateKind
    written: pa.RecordBatch
    description: str


class SavepointMaker:
    """Maker of random savepoints.

    Args:
        rng: random number generator.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def write(self, path: Path) -> RandomSavepoint:
        """A savepoint in a new directory."""
        rng = self._rng
        key, value = self._key(), self._value()
        kind = rng.choice((StateKind.VALUE, StateKind.VALUE, StateKind.LIST, StateKind.MAP))
        key_groups = rng.choice((1, 128, 4096, 32768))
        found = [self._of(key) for _ in range(rng.choice((1, 5, 40)))]
        keys = list({exact(each): each for each in found}.values())
        arrow = arrow_type(value).type
        columns = {"key": pa.array(keys, arrow_type(key).type)}
        if kind is StateKind.LIST:
            lists = [[self._of(value) for _ in range(rng.choice((1, 2, 5)))] for _ in keys]
            columns["value"] = pa.array(lists, pa.list_(arrow))
        elif kind is StateKind.MAP:
            columns["map_key"] = pa.array([rng.choice(_TEXTS) for _ in keys])
            columns["value"] = pa.array([None if rng.random() < 0.1 else self._of(value) for _ in keys], arrow)
        else:
            columns["value"] = pa.array([self._of(value) for _ in keys], arrow)
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        state = FlinkState("s", kind, value, text.STRING if kind is StateKind.MAP else None)
        operator = FlinkOperator.of_uid("u", key, [state], key_groups)
        write_savepoint(LocalStorage(path), [(operator, {"s": iter([batch])})])
        return RandomSavepoint(path, kind, batch, f"{key} to {kind.name} of {value}, {key_groups} key groups")

    def _key(self) -> Serializer:
        of_row = RowDataSerializer((self._rng.choice(_TYPES), LogicalType("BIGINT")))
        tuples = TupleSerializer.of(primitives.LONG, text.STRING)
        return self._rng.choice((*(leaf for leaf in _LEAVES if leaf.hashes is not None), tuples, of_row))

    def _value(self) -> Serializer:
        rng = self._rng
        chance = rng.random()
        if chance < 0.3:
            return rng.choice(_LEAVES)
        if chance < 0.5:
            return TupleSerializer.of(*[rng.choice(_LEAVES) for _ in range(rng.randrange(1, 4))])
        if chance < 0.85:
            most = _MAX_COLUMNS if rng.random() < 0.1 else _MIN_COLUMNS
            return RowDataSerializer(tuple(rng.choice(_TYPES) for _ in range(rng.randrange(1, most + 1))))
        if chance < 0.9:
            return NullableSerializer((rng.choice(_LEAVES),))
        if chance < 0.95:
            return ListSerializer((rng.choice(_LEAVES),))
        return MapSerializer((text.STRING, rng.choice(_LEAVES)))

    def _of(self, serializer: Serializer) -> Any:
        """A value for Arrow."""
        rng = self._rng
        if isinstance(serializer, TupleSerializer):
            return {f"f{number}": self._of(part) for number, part in enumerate(serializer.parts)}
        if isinstance(serializer, RowDataSerializer):
            fields = {f"f{number}": self._of_sql(kind) for number, kind in enumerate(serializer.types)}
            return {"kind": rng.choice((0, 0, 0, 3)), **fields}
        if isinstance(serializer, NullableSerializer):
            return None if rng.random() < 0.3 else self._of(serializer.parts[0])
        if isinstance(serializer, ListSerializer):
            return [self._of(serializer.parts[0]) for _ in range(rng.choice((0, 1, 3)))]
        if isinstance(serializer, MapSerializer):
            key, value = serializer.parts
            return [(self._of(key), None if rng.random() < 0.2 else self._of(value)) for _ in range(rng.choice((0, 1)))]
        made: dict[Serializer, Callable[[], Any]] = {
            primitives.BOOLEAN: lambda: rng.random() < 0.5,
            primitives.BYTE: lambda: self._integer(8),
            primitives.SHORT: lambda: self._integer(16),
            primitives.INT: lambda: self._integer(32),
            primitives.LONG: lambda: self._integer(64),
            primitives.DOUBLE: lambda: rng.choice(_FRACTIONS),
            primitives.FLOAT: lambda: rng.choice(_SHORT_FRACTIONS),
            primitives.BYTES: lambda: rng.randbytes(rng.choice((0, 1, 300))),
            text.STRING: lambda: rng.choice(_TEXTS),
        }
        return made[serializer]()

    def _integer(self, bits: int) -> int:
        most = 1 << bits - 1
        return self._rng.choice((0, 1, -1, most - 1, -most, self._rng.randrange(-most, most)))

    def _of_sql(self, kind: LogicalType) -> Any:
        rng, root = self._rng, kind.root
        if rng.random() < 0.3:
            return None
        if root in _BITS:
            return self._integer(_BITS[root])
        if root.startswith("TIMESTAMP"):
            return self._timestamp(kind.parameters[0])
        made: dict[str, Callable[[], Any]] = {
            "BOOLEAN": lambda: rng.random() < 0.5,
            "DOUBLE": lambda: rng.choice(_FRACTIONS),
            "FLOAT": lambda: rng.choice(_SHORT_FRACTIONS),
            "VARCHAR": lambda: rng.choice(_TEXTS),
            "VARBINARY": lambda: rng.randbytes(rng.choice((0, 1, 7, 8, 20))),
            "DECIMAL": lambda: self._decimal(*kind.parameters),
            "DATE": lambda: datetime.date.fromordinal(rng.choice((1, 719_162, 719_163, 3_652_059))),
            "TIME_WITHOUT_TIME_ZONE": lambda: (
                datetime.datetime.min + datetime.timedelta(milliseconds=rng.choice((0, 1, 86_399_999)))
            ).time(),
        }
        return made[root]()

    def _decimal(self, precision: int, scale: int) -> Decimal:
        most = 10**precision - 1
        unscaled = self._rng.choice((0, 1, -1, most, -most, self._rng.randrange(-most, most + 1)))
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    def _timestamp(self, digits: int) -> Any:
        if digits > 6:
            millis = self._rng.choice((0, -1, 1, -62_135_596_800_000))
            return {"millis": millis, "nanos": self._rng.choice((0, 1, 999_999))}
        micros = self._rng.choice(_MICROS)
        return micros // 1000 * 1000 if digits <= 3 else micros


def exact(value: Any) -> Any:
    """A value that equals another only if both are the same: zeros of both signs differ, and a NaN equals itself."""
    if isinstance(value, dict):
        return tuple((name, exact(part)) for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(exact, value))
    return repr(value)
