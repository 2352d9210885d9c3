"""The operator of Spark that is exported, and the forms that its keys and values take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from spark_ckpt.checkpoint.batch import SPARK_OFFSETS
from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.export.export_type import ExportType
from spark_ckpt.flink.export.planned_state import Read, typed
from spark_ckpt.flink.export.row_data_types import row_data_type
from spark_ckpt.flink.export.source_rows import SourceRows, source_rows
from spark_ckpt.flink.export.struct_types import KeyForm, ValueForm, key_type, value_type
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.unsafe_row import struct_array
from spark_ckpt.state.views import View, choose_view


@dataclass(frozen=True, slots=True)
class Forms:
    """Forms in the Flink job.

    Args:
        key: form of the keys.
        value: form of values.
        is_sql: True for the aggregate of a `GROUP BY` of Flink SQL.
    """

    key: KeyForm
    value: ValueForm = ValueForm.PLAIN
    is_sql: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SourceOperator:
    """A stateful operator of a checkpoint.

    Args:
        catalog: state of the checkpoint.
        stores: stores of the operator.
        title: id and uid of the operator in Flink, for errors.
        forms: forms in the Flink job.
    """

    catalog: StateCatalog
    stores: tuple[Store, ...]
    title: str
    forms: Forms

    @property
    def name(self) -> str:
        """Spark's short name of the operator."""
        return self.stores[0].state.name

    @property
    def offsets(self) -> OffsetEntry | None:
        """Entry of the batch in Spark's offset log; None if the checkpoint lacks it."""
        return offsets_of(self.catalog)

    def view(self, variable: str | None = None, store: str | None = None) -> View:
        """A column family.

        Raises:
            UnsupportedStateError: only Spark can read it.
        """
        return choose_view(self.catalog, self.stores[0].state.operator_id, store, variable)

    def read(self, view: View) -> Read:
        """Reader of the rows of a column family."""

        def read() -> Iterator[SourceRows]:
            return source_rows(self.catalog, view)

        return read

    def key(self, kind: Struct) -> ExportType:
        """Type of the keys.

        Raises:
            UnsupportedForFlinkError: the grouping columns do not have the form of the keys.
        """
        return typed(self.title, None, lambda: key_type(kind, self.forms.key))

    def value(self, state: str, kind: Struct, *, may_be_null: bool = False) -> ExportType:
        """Type of values, list elements or map keys of a state.

        Raises:
            UnsupportedForFlinkError: a column has no type in Flink.
        """
        return typed(self.title, state, lambda: value_type(kind, self.forms.value, may_be_null=may_be_null))

    def row(self, state: str, kind: Struct) -> ExportType:
        """Type of values that are rows of Flink SQL, unless the user wants another.

        Raises:
            UnsupportedForFlinkError: a column has no type in Flink.
        """
        if self.forms.value is ValueForm.ROW:
            return self.value(state, kind)
        return typed(self.title, state, lambda: row_data_type(kind))

    def refused(self, reason: str, state: str | None = None) -> UnsupportedForFlinkError:
        """Error for something that cannot be exported."""
        return UnsupportedForFlinkError(self.title, state, reason)


def offsets_of(catalog: StateCatalog) -> OffsetEntry | None:
    """Entry of the batch in Spark's offset log; None if the checkpoint lacks it.

    Raises:
        SparkLogFormatError: it does not follow Spark's format.
    """
    for state in catalog.found.metadata.master_states:
        if state.name == SPARK_OFFSETS:
            return OffsetEntry.decode(state.payload, f"{catalog.location}: master state {SPARK_OFFSETS}")
    return None


def without_last(kind: Struct, number: int = 1) -> Struct:
    """A struct without its last columns."""
    return Struct(kind.names[:-number], kind.types[:-number])


def first_columns(structs: pa.StructArray, kind: Struct) -> pa.StructArray:
    """The first columns of structs, as many as `kind` has."""
    return struct_array(structs.flatten()[: len(kind.types)], list(kind.arrow), len(structs))
