"""Encoded rows of a column family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.state.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class FamilyRows:
    """Rows of one column family.

    Args:
        family: the column family.
        keys: the keys.
        values: the values.
        hashes: int32, Spark's hash of the grouping key of each row.
        lists: True if the rows of a key are a list.
    """

    family: FamilySchema
    keys: Rows
    values: Rows
    hashes: NDArray[np.int32]
    lists: bool = False
