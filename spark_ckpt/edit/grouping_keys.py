"""Grouping keys that the user names by some or all of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.edit.errors import EditRowError
from spark_ckpt.edit.row_input import RowSource, table_of
from spark_ckpt.edit.rows import fitted, one_chunk
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.catalog import Store
from spark_ckpt.state.grouping import GroupingKey, grouping_key
from spark_ckpt.state.partition_hash import grouping_hashes
from spark_ckpt.state.unsafe_row import binary_array, struct_array
from spark_ckpt.state.unsafe_row_encoder import encode_rows

KEY = "key"
"""Column with whole keys, as `read` returns them."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupingKeys:
    """Grouping keys of an operator.

    Args:
        kind: type of a whole grouping key.
        columns: indices of the columns that are named, ascending.
        encoded: the values of these columns, as rows of Spark.
        hashes: int32, Spark's hash of each key; None unless all columns are named.
    """

    kind: Struct
    columns: tuple[int, ...]
    encoded: pa.LargeBinaryArray
    hashes: NDArray[np.int32] | None

    def __len__(self) -> int:
        return len(self.encoded)

    def matching(self, grouping: GroupingKey, keys: pa.StructArray) -> NDArray[np.bool_]:
        """Mask of the keys of a column family that belong to one of the grouping keys.

        Args:
            grouping: place of the grouping key in them.
            keys: decoded keys of the family.
        """
        if not len(keys):
            return np.empty(0, np.bool_)
        rows = encode_rows(*_some(self.kind, self.columns, grouping.of(keys).flatten(), len(keys)))
        mask: NDArray[np.bool_] = pc.is_in(binary_array(rows), value_set=self.encoded).to_numpy(zero_copy_only=False)
        return mask

    def hashes_of(self, grouping: GroupingKey, keys: pa.StructArray) -> NDArray[np.int32]:
        """Spark's hash of the grouping key of each key of a column family; arguments as in `matching`."""
        owners = struct_array(grouping.of(keys).flatten(), list(self.kind.arrow), len(keys))
        return grouping_hashes(self.kind, encode_rows(self.kind, owners))


def grouping_keys(source: RowSource, stores: Sequence[Store]) -> GroupingKeys:
    """The grouping keys in a table.

    Args:
        source: a column for each column of the grouping key that is named, or a column `key` with whole keys as `read`
            returns them. Columns of a join have the names `field0`, `field1`, and so on.
        stores: stores of one operator.

    Raises:
        EditRowError: a column is no part of the grouping key, or a value does not fit.
    """
    kind = next(
        (found.kind for store in stores for family in store.families if (found := grouping_key(store, family))), None
    )
    if kind is None:
        raise EditRowError(KEY, None, f"{stores[0].state.key} has no grouping key that Spark exposes")
    whole = pa.field(KEY, kind.arrow)
    schema = pa.schema([*kind.arrow, *(() if KEY in kind.names else (whole,))])
    table = _unpacked(table_of(source, schema), kind)
    names = table.column_names
    unknown = [name for name in names if name not in kind.names]
    if unknown or not names:
        expected = f"the grouping key has the columns {', '.join(kind.names)}"
        raise EditRowError(unknown[0] if unknown else KEY, None, expected)
    columns = tuple(index for index, name in enumerate(kind.names) if name in names)
    parts = [
        fitted(one_chunk(table.column(kind.names[i])), kind.types[i].arrow, kind.names[i], is_key=True)
        if i in columns
        else pa.nulls(len(table), kind.types[i].arrow)
        for i in range(len(kind.types))
    ]
    encoded = encode_rows(*_some(kind, columns, parts, len(table)))
    is_whole = len(columns) == len(kind.types)
    hashes = grouping_hashes(kind, encoded) if is_whole else None
    return GroupingKeys(kind, columns, binary_array(encoded), hashes)


def _some(
    kind: Struct, columns: tuple[int, ...], parts: Sequence[pa.Array], length: int
) -> tuple[Struct, pa.StructArray]:
    some = Struct(tuple(kind.names[i] for i in columns), tuple(kind.types[i] for i in columns))
    return some, struct_array([parts[i] for i in columns], list(some.arrow), length)


def _unpacked(table: pa.Table, kind: Struct) -> pa.Table:
    """The columns of whole keys."""
    is_packed = table.column_names == [KEY] and pa.types.is_struct(table.schema.field(KEY).type)
    if not is_packed or (kind.names == (KEY,) and pa.types.is_struct(kind.types[0].arrow)):
        return table
    return pa.Table.from_struct_array(one_chunk(table.column(KEY)))
