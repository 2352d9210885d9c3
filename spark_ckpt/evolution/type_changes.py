"""Types of Spark that have the same bytes, and types that have all values of another."""

from __future__ import annotations

import pyarrow as pa

from spark_ckpt.spark_files.types import Array, Decimal, Fixed, Map, SparkType, Struct


def same_layout(old: SparkType, new: SparkType) -> bool:
    """True if values have the same bytes. Names of fields do not matter."""
    match old, new:
        case Struct(), Struct():
            return len(old.types) == len(new.types) and all(map(same_layout, old.types, new.types))
        case Array(), Array():
            return same_layout(old.element, new.element)
        case Map(), Map():
            return same_layout(old.key, new.key) and same_layout(old.value, new.value)
    return old == new


def widens(old: SparkType, new: SparkType) -> bool:
    """True if a type has all values of another. Whole numbers of 64 bits in floating point are checked one by one."""
    ours, theirs = old.arrow, new.arrow
    if isinstance(old, Fixed) and isinstance(new, Fixed):
        if pa.types.is_signed_integer(ours) and pa.types.is_signed_integer(theirs):
            return bool(ours.bit_width < theirs.bit_width)
        if pa.types.is_signed_integer(ours):
            return bool(theirs == pa.float64())
        return bool(ours == pa.float32() and theirs == pa.float64())
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        digits = theirs.precision - theirs.scale >= ours.precision - ours.scale
        return bool(theirs.scale >= ours.scale and digits)
    return False
