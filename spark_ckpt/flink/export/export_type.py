"""Type of Flink that columns of Spark are exported as, with the conversion of their values in Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.types.lookup import flink_type

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
"""Conversion of an Arrow array of a type of Spark to the Arrow type of a serializer; nulls stay null."""


class NotForFlinkError(ValueError):
    """A type without a serializer; the caller adds operator and state.

    Attributes:
        reason: the type, and the remedy.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NullValueError(ValueError):
    """A null that Flink's serializer cannot hold; the caller adds operator and state.

    Attributes:
        row: index of the row in its batch.
        reason: the field, and the remedy.
    """

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason


@dataclass(frozen=True, slots=True, eq=False)
class ExportType:
    """Type of a key, value, list element or map key.

    Args:
        serializer: the serializer.
        java: expression in Java for its `TypeInformation`.
        convert: conversion of values; None if the Arrow types are the same.
    """

    serializer: Serializer
    java: str
    convert: Convert | None = None

    def of(self, values: pa.Array) -> pa.Array:
        """The values in the Arrow type of the serializer.

        Raises:
            NullValueError: a null that the serializer cannot hold.
        """
        return values if self.convert is None else self.convert(values)

    @classmethod
    def of_scalar(cls, serializer: Serializer, convert: Convert | None = None) -> ExportType:
        """Type of a serializer whose record has a declaration."""
        java = flink_type(serializer).java
        assert java is not None
        return cls(serializer, java, convert)


def java_text(text: str) -> str:
    """String literal in Java. Its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def structs(columns: Sequence[pa.Array], kind: pa.DataType, values: pa.Array) -> pa.StructArray:
    """Structs of these columns, null where `values` is."""
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(list(columns), fields=list(kind), mask=mask)


def rows_of_kind(columns: Sequence[pa.Array], kind: pa.DataType, values: pa.Array) -> pa.StructArray:
    """Rows of Flink, all of the kind `+I`, null where `values` is."""
    return structs([pa.repeat(pa.scalar(0, pa.int8()), len(values)), *columns], kind, values)


def check_no_null(values: pa.Array, what: str, remedy: str) -> None:
    """Check that no value is null.

    Args:
        values: the values.
        what: name of the field, for the error.
        remedy: what to do, for the error.

    Raises:
        NullValueError: one is null.
    """
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise NullValueError(row, f"{what} is null, which this serializer of Flink cannot hold: {remedy}")
