"""Rows of a Flink state as rows of the query's column families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.importing.column_conversion import Fit, UnfitValueError, fit_rows
from spark_ckpt.flink.importing.errors import FlinkImportRowError, FlinkTypeError
from spark_ckpt.flink.importing.mapping import Pair
from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.spark_files.types import Fixed, Struct
from spark_ckpt.state.partition_hash import grouping_hashes
from spark_ckpt.state.rows import Rows
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.unsafe_row_encoder import encode_rows
from spark_ckpt.state_writing.family_rows import FamilyRows
from spark_ckpt.state_writing.targets import TargetKind, rows_of_families

_MAX_KEY_CHARACTERS = 200

_VALUE_COLUMNS = {
    TargetKind.VALUE: "value",
    TargetKind.AGGREGATE: "value",
    TargetKind.LIST: "list_element",
    TargetKind.MAP: "user_map_value",
}
_MAP_KEY, _TIME = "user_map_key", "expiration_timestamp_ms"


@dataclass(frozen=True, slots=True)
class Order:
    """Flink's fields in the order of the query's.

    Args:
        key: fields of keys; None for their own order.
        value: fields of values; None likewise.
    """

    key: Sequence[str] | None = None
    value: Sequence[str] | None = None


def _has_fraction(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return True
    return any(_has_fraction(kind.field(number).type) for number in range(kind.num_fields))


class RowEncoder:
    """Encoder of the rows of one state.

    Args:
        pair: the state and its target.
        order: the order of its fields.

    Attributes:
        columns: name in Flink, name in the query, Arrow type in Flink and in the query, for each field.

    Raises:
        FlinkTypeError: the types do not fit.
    """

    def __init__(self, pair: Pair, order: Order = Order()) -> None:
        self.pair = pair
        state, target = pair.state, pair.target
        self._key = self._fit("key", target.key, order.key)
        self._map_key: Fit | None = None
        self._value: Fit | None = None
        for index, field in enumerate(target.key.arrow):
            # In grouping keys, Spark normalizes zeros and NaN.
            if _has_fraction(field.type):
                kind = str(state.columns.schema.field("key").type)
                raise FlinkTypeError(
                    state.name, f"key.{target.key.names[index]}", kind, str(field.type), "keys with fractions"
                )
        if target.kind is TargetKind.MAP:
            map_key = target.family.key.types[1]
            assert isinstance(map_key, Struct)
            self._map_key = self._fit(_MAP_KEY, map_key, None)
        if not target.kind.is_timers:
            name = _VALUE_COLUMNS[target.kind]
            self._value = self._fit(name, target.family.value, order.value, target.family.required)
        elif not isinstance(target.family.key.types[1], Fixed):
            raise FlinkTypeError(state.name, _TIME, "int64", str(target.family.key.types[1].arrow))
        fits = [fit for fit in (self._key, self._map_key, self._value) if fit is not None]
        time = (_TIME, f"key.{target.family.key.names[1]}", "int64", "int64") if target.kind.is_timers else None
        self.columns = (*(column for fit in fits for column in fit.columns), *([time] if time else []))

    def encode(self, batch: pa.RecordBatch) -> Iterator[FamilyRows]:
        """Rows of a batch for each column family, each checked by decoding it again.

        Raises:
            FlinkImportRowError: a value does not fit.
        """
        target = self.pair.target
        keys = self._convert(self._key, batch, "key")
        encoded_keys = encode_rows(target.key, keys, target.title)
        hashes = self._hashes(encoded_keys)
        part: pa.Array | None = None
        values: pa.StructArray | None = None
        if target.kind.is_timers:
            part = batch.column(_TIME)
        else:
            assert self._value is not None
            values = self._convert(self._value, batch, _VALUE_COLUMNS[target.kind])
        if self._map_key is not None:
            part = self._convert(self._map_key, batch, _MAP_KEY)
        for family, family_keys, family_values in rows_of_families(target, keys, part, values):
            yield self._rows(family, family_keys, family_values, hashes)

    def _fit(
        self,
        column: str,
        kind: Struct,
        order: Sequence[str] | None,
        required: frozenset[str] = frozenset(),
    ) -> Fit:
        state = self.pair.state
        source = state.columns.schema.field(column).type
        return fit_rows(source, kind, state.name, column, order=order, required=required)

    def _hashes(self, keys: Rows) -> NDArray[np.int32]:
        return grouping_hashes(self.pair.target.key, keys)

    def _convert(self, fit: Fit, batch: pa.RecordBatch, column: str) -> pa.StructArray:
        try:
            return fit.convert(batch.column(column))
        except UnfitValueError as e:
            key = str(batch.column("key")[e.index].as_py())
            if len(key) > _MAX_KEY_CHARACTERS:
                key = f"{key[:_MAX_KEY_CHARACTERS]}..."
            raise FlinkImportRowError(self.pair.state.name, e.column, key, e.reason) from None

    def _rows(
        self, family: FamilySchema, keys: pa.StructArray, values: pa.StructArray, hashes: NDArray[np.int32]
    ) -> FamilyRows:
        return FamilyRows(
            family,
            self._encoded(family.key, keys),
            self._encoded(family.value, values),
            hashes,
            self.pair.target.kind is TargetKind.LIST,
        )

    def _encoded(self, kind: Struct, rows: pa.StructArray) -> Rows:
        encoded = encode_rows(kind, rows, self.pair.target.title)
        decoded = decode_rows(kind, encoded)
        # NaN differs from itself in Arrow's comparison.
        if not decoded.equals(rows) and repr(decoded.to_pylist()) != repr(rows.to_pylist()):
            raise AssertionError(f"the encoded rows of {self.pair.target.title} are not those of Flink")
        return encoded
