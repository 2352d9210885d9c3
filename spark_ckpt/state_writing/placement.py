"""Partition and key group of encoded rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from spark_ckpt.format.key_groups import key_group_of
from spark_ckpt.state.unsafe_row import binary_array
from spark_ckpt.state_writing.family_rows import FamilyRows

PLACED = pa.schema(
    [
        ("partition", pa.int32()),
        ("key_group", pa.int32()),
        ("family", pa.int16()),
        ("key", pa.large_binary()),
        ("value", pa.large_binary()),
    ]
)
"""Columns of placed rows; `family` is the number of the column family in the order of sections."""


class Placement:
    """Places of the rows of one store.

    Args:
        parallelism: number of partitions of the store.
        key_group_factors: numbering of the key groups.
        families: names of its column families, in the order of sections.
    """

    def __init__(self, parallelism: int, key_group_factors: Sequence[int], families: Sequence[str]) -> None:
        self.parallelism = parallelism
        self._factors = tuple(key_group_factors)
        self._numbers = {name: number for number, name in enumerate(families)}

    def placed(self, rows: FamilyRows) -> pa.RecordBatch:
        """Rows of a column family with their places."""
        hashes = rows.hashes.astype(np.int64)
        return pa.RecordBatch.from_arrays(
            [
                pa.array((hashes % self.parallelism).astype(np.int32)),
                pa.array(key_group_of(rows.hashes, self._factors).astype(np.int32)),
                pa.array(np.full(len(rows.keys), self._numbers[rows.family.name], np.int16)),
                binary_array(rows.keys),
                binary_array(rows.values),
            ],
            schema=PLACED,
        )


def in_order(rows: pa.Table) -> pa.Table:
    """Placed rows by key group and family. Those of a list keep their order."""
    order = np.lexsort((rows.column("family").to_numpy(), rows.column("key_group").to_numpy()))
    return rows.take(pa.array(order))
