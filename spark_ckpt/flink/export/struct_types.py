"""Forms of keys and values in Flink: which type a struct of Spark becomes."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

from spark_ckpt.flink.export.export_type import Convert, ExportType, NotForFlinkError, check_no_null
from spark_ckpt.flink.export.plain_types import plain_type, tuple_type
from spark_ckpt.flink.export.row_data_types import flattened, is_flat, leaves_of, row_data_type
from spark_ckpt.flink.streams.types import primitives, text
from spark_ckpt.spark_files.types import Array, Bytes, Fixed, Map, SparkType, Struct


class KeyForm(Enum):
    """Type of the keys in the Flink job. Jobs that key by different types hash the same columns differently."""

    LONG = "long"
    INT = "int"
    STRING = "string"
    TUPLE = "tuple"
    ROW_DATA = "rowdata"


class ValueForm(Enum):
    """Type of values, list elements and map keys."""

    PLAIN = "plain"
    """A single column is its own type, flat columns are a row of Flink SQL, and any others a `Row`."""
    ROW_DATA = "rowdata"
    """A row of Flink SQL."""
    ROW = "row"
    """A `Row` of the DataStream API."""


_NUMBERS = {
    KeyForm.LONG: (pa.int64(), primitives.LONG),
    KeyForm.INT: (pa.int32(), primitives.INT),
}
_OTHER_KEY = "export with --key rowdata, whose columns may be null"
_OTHER_VALUE = "export with --value rowdata or --value row, whose columns may be null"


def key_type(kind: Struct, form: KeyForm) -> ExportType:
    """Type of the keys.

    Args:
        kind: the grouping columns.
        form: their form.

    Raises:
        NotForFlinkError: the columns do not have this form, or Java's hash of them differs in each JVM.
    """
    names, leaves = leaves_of(kind)
    if form is KeyForm.ROW_DATA:
        return row_data_type(kind)
    for name, leaf in zip(names, leaves, strict=True):
        _check_hashed(name, leaf)
    if form is KeyForm.TUPLE:
        of_tuple = tuple_type(names, leaves, _OTHER_KEY)
        flat = pa.struct([(name, leaf.arrow) for name, leaf in zip(names, leaves, strict=True)])
        return ExportType(
            of_tuple.serializer,
            of_tuple.java,
            lambda keys: of_tuple.of(pa.StructArray.from_arrays(flattened(keys, kind), fields=list(flat))),
        )
    columns = ", ".join(f"{name} {leaf.arrow}" for name, leaf in zip(names, leaves, strict=True)) or "no column"
    if len(leaves) != 1:
        raise NotForFlinkError(f"the key is {columns}, not one column: use --key tuple or --key rowdata")
    (name,), (leaf,) = names, leaves
    if form is KeyForm.STRING:
        if not isinstance(leaf, Bytes) or leaf.arrow != pa.string():
            raise NotForFlinkError(f"the key is {columns}, not a string: use --key tuple or --key rowdata")
        single = ExportType.of_scalar(text.STRING)
    else:
        arrow, serializer = _NUMBERS[form]
        if not (
            isinstance(leaf, Fixed) and pa.types.is_integer(leaf.arrow) and leaf.arrow.bit_width <= arrow.bit_width
        ):
            raise NotForFlinkError(f"the key is {columns}, not {form.value}: use --key tuple or --key rowdata")
        single = ExportType.of_scalar(serializer, lambda values: values.cast(arrow))
    return _only(single, lambda keys: flattened(keys, kind)[0], name, _OTHER_KEY)


def value_type(kind: Struct, form: ValueForm, *, may_be_null: bool = False) -> ExportType:
    """Type of values.

    Args:
        kind: their columns.
        form: their form.
        may_be_null: True for values of a map, which may be null.

    Raises:
        NotForFlinkError: a column has no type in Flink.
    """
    if not kind.types:
        raise NotForFlinkError("a value without columns")
    if form is ValueForm.ROW:
        return plain_type(kind)
    if form is ValueForm.ROW_DATA:
        return row_data_type(kind)
    if len(kind.types) > 1:
        return row_data_type(kind) if is_flat(kind) else plain_type(kind)
    single, remedy = plain_type(kind.types[0]), None if may_be_null else _OTHER_VALUE
    return _only(single, lambda values: values.flatten()[0], kind.names[0], remedy)


def _only(single: ExportType, column_of: Convert, name: str, remedy: str | None) -> ExportType:
    """Type of structs with a single column; `remedy` is None if it may be null."""

    def convert(values: pa.Array) -> pa.Array:
        column = column_of(values)
        if remedy is not None:
            check_no_null(column, name, remedy)
        return single.of(column)

    return ExportType(single.serializer, single.java, convert)


def _check_hashed(name: str, kind: SparkType) -> None:
    if isinstance(kind, (Array, Map)) or (isinstance(kind, Bytes) and kind.arrow == pa.binary()):
        raise NotForFlinkError(
            f"column {name}: Java's hash of {kind.arrow} is no hash of its content; use --key rowdata"
        )
