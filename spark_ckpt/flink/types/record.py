"""Record of a type of Flink: all that tables, exports and imports know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.types.encoded_columns import Encoded
from spark_ckpt.state.vector_rows import ByteRows, Column

Convert: TypeAlias = Callable[[Any], Any]
"""Conversion of a value that is not null."""

Read: TypeAlias = Callable[[ByteRows], Column]
"""Reader of a column from the bytes of its rows.

Raises:
    NotPlainError: the rows have to be read one by one.
"""

Write: TypeAlias = Callable[[pa.Array], Encoded]
"""Writer of a column.

Raises:
    BadValueError: a value does not fit the serializer.
"""


class ArrowType(NamedTuple):
    """Arrow type of values.

    Args:
        type: Arrow type.
        convert: conversion of values that are not null; None if Arrow takes them as they are.
    """

    type: pa.DataType
    convert: Convert | None = None

    def of(self, value: Any) -> Any:  # noqa: ANN401  (values of all types)
        """Value for Arrow."""
        return value if value is None or self.convert is None else self.convert(value)


@dataclass(frozen=True, slots=True, eq=False)
class FlinkType:
    """Type of Flink.

    Args:
        serializer: bytes, name and hash of a single value.
        arrow: Arrow type of its values.
        read: reads a column at once; None if its rows are read one by one.
        write: writes a column at once; None if values can be read, but not written.
        java: expression in Java for its `TypeInformation`; None if no export declares it by itself.
    """

    serializer: Serializer
    arrow: ArrowType
    read: Read | None = None
    write: Write | None = None
    java: str | None = None

    def encode(self, array: pa.Array) -> Encoded:
        """Bytes and hashes of a column. The type is one that can be written.

        Raises:
            BadValueError: a value does not fit the serializer.
        """
        assert self.write is not None
        return self.write(array)
