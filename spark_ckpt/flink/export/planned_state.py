"""A state of Spark that becomes a state of Flink."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from spark_ckpt.flink.export.errors import FlinkRowError, UnsupportedForFlinkError
from spark_ckpt.flink.export.export_type import ExportType, NotForFlinkError, NullValueError, java_text
from spark_ckpt.flink.export.model import KEY, MAP_KEY, TIMESTAMP, VALUE, FlinkState, StateKind
from spark_ckpt.flink.export.source_rows import SourceRows

Read: TypeAlias = Callable[[], Iterator[SourceRows]]
"""Reader of the rows of Spark."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Functions that take the key, the map key, the value and the time from rows of Spark.

    Args:
        key: from keys.
        value: from values; of lists, of their elements. None for timers.
        map_key: from keys, for maps.
        timestamp: milliseconds since 1970, from keys, for timers.
    """

    key: Callable[[pa.StructArray], pa.Array]
    value: Callable[[pa.StructArray], pa.Array] | None = None
    map_key: Callable[[pa.StructArray], pa.Array] | None = None
    timestamp: Callable[[pa.StructArray], pa.Array] | None = None


@dataclass(slots=True)
class Skipped:
    """Number of rows of Spark that are not exported, known after they were read."""

    rows: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PlannedState:
    """State that is exported.

    Args:
        state: the state in Flink.
        java: statement in Java that declares it.
        origin: name of the state variable or column family in Spark.
        key: type of the keys, the same for all states of an operator.
        read: reads the rows of Spark.
        parts: takes the columns from them.
        note: what the state in Flink lacks; empty if nothing.
        skipped: number of rows that were left out.
    """

    state: FlinkState
    java: str
    origin: str
    key: ExportType
    read: Read
    parts: Parts
    note: str = ""
    skipped: Skipped = field(default_factory=Skipped)

    def batches(self, operator: str) -> Iterator[pa.RecordBatch]:
        """Rows for the writer.

        Args:
            operator: id and uid of the operator, for errors.

        Raises:
            FlinkRowError: a null that Flink's serializer cannot hold.
            SegmentError, StateRowError, StorageError: a file is damaged, or cannot be read.
        """
        for rows in self.read():
            if not len(rows.keys):
                continue
            columns = {KEY: self._column(operator, KEY, rows, self.parts.key)}
            if self.parts.map_key is not None:
                columns[MAP_KEY] = self._column(operator, MAP_KEY, rows, self.parts.map_key)
            if self.parts.timestamp is not None:
                columns[TIMESTAMP] = self.parts.timestamp(rows.keys)
            if self.parts.value is not None:
                values = self._column(operator, VALUE, rows, self.parts.value)
                columns[VALUE] = values if rows.counts is None else _lists(values, rows.counts)
            yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _column(
        self, operator: str, name: str, rows: SourceRows, take: Callable[[pa.StructArray], pa.Array]
    ) -> pa.Array:
        try:
            return take(rows.values if name == VALUE else rows.keys)
        except NullValueError as null:
            key = rows.key_of(null.row) if name == VALUE else rows.keys[null.row].as_py()
            raise FlinkRowError(operator, self.state.name, None, name, f"key {key}: {null.reason}") from None


def _lists(values: pa.Array, counts: np.ndarray) -> pa.ListArray:
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def value_state(name: str, value: ExportType) -> tuple[FlinkState, str]:
    """Value state, and its declaration."""
    state = FlinkState(name, StateKind.VALUE, value.serializer)
    return state, f"new ValueStateDescriptor<>({java_text(name)}, {value.java})"


def list_state(name: str, element: ExportType) -> tuple[FlinkState, str]:
    """List state, and its declaration."""
    state = FlinkState(name, StateKind.LIST, element.serializer)
    return state, f"new ListStateDescriptor<>({java_text(name)}, {element.java})"


def map_state(name: str, map_key: ExportType, value: ExportType) -> tuple[FlinkState, str]:
    """Map state, and its declaration."""
    state = FlinkState(name, StateKind.MAP, value.serializer, map_key.serializer)
    return state, f"new MapStateDescriptor<>({java_text(name)}, {map_key.java}, {value.java})"


def timers(kind: StateKind) -> tuple[FlinkState, str]:
    """Timers of a process function, which need no declaration."""
    time = "event" if kind is StateKind.EVENT_TIMER else "processing"
    return FlinkState.timers(kind), f"// {time}-time timers of the process function: nothing to declare"


def typed(operator: str, state: str | None, make: Callable[[], ExportType]) -> ExportType:
    """A type, with the operator and state in its error.

    Raises:
        UnsupportedForFlinkError: Flink has no such type.
    """
    try:
        return make()
    except NotForFlinkError as e:
        raise UnsupportedForFlinkError(operator, state, e.reason) from None
