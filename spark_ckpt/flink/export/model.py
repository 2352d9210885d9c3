"""Operators and states of a savepoint that is to be written.

Rows of a state come as Arrow batches. Columns have the types of `spark_ckpt.flink.types.lookup.arrow_type`:

VALUE   key, [namespace,] value
LIST    key, [namespace,] value: an Arrow list for each key; an empty list or a null is no row
MAP     key, [namespace,] map_key, value: a row for each entry
timers  key, [namespace,] timestamp: int64 milliseconds since 1970

The column `namespace` is there unless the serializer of the namespace is `VOID_NAMESPACE`. A key has one row, of a map
one row for each map key; for timers, a key may have many, with different timestamps. Rows need no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

from spark_ckpt.flink.export.operator_id import operator_id_of
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.primitives import VOID_NAMESPACE
from spark_ckpt.metadata.handles import DistributionMode

DEFAULT_MAX_PARALLELISM = 128
"""Key groups of a Flink job of up to 85 subtasks whose max parallelism is not set
(`KeyGroupRangeAssignment.computeDefaultMaxParallelism`)."""

DEFAULT_TIMER_SERVICE = "user-timers"
"""Name of the timer service of process functions (`KeyedProcessOperator.open`)."""

SOURCE_READER_STATE = "SourceReaderState"
"""Operator state with the splits of a source (`SourceOperator.SPLITS_STATE_DESC`)."""

KEY, NAMESPACE, MAP_KEY, VALUE, TIMESTAMP = "key", "namespace", "map_key", "value", "timestamp"
"""Names of columns."""

Rows: TypeAlias = Iterator[pa.RecordBatch]
"""Rows of one state."""


class StateKind(Enum):
    """Kind of a state. The value is the option `KEYED_STATE_TYPE`; for timers, the prefix of the state's name
    (`InternalTimeServiceManagerImpl`)."""

    VALUE = "VALUE"
    LIST = "LIST"
    MAP = "MAP"
    EVENT_TIMER = "_timer_state/event_"
    PROCESSING_TIMER = "_timer_state/processing_"

    @property
    def is_timer(self) -> bool:
        """True for timers."""
        return self in (StateKind.EVENT_TIMER, StateKind.PROCESSING_TIMER)


@dataclass(frozen=True, slots=True)
class FlinkState:
    """Keyed state of an operator, as the job declares it.

    Args:
        name: name of the state; of timers, see `timers`.
        kind: kind of the state.
        value: serializer of a value, of an element of a list, or of a value of a map. Timers have `VOID_NAMESPACE`.
        map_key: serializer of the keys of a map; None for the other kinds.
        namespace: serializer of the namespaces; `VOID_NAMESPACE` except for windows.
        codegen: True if generated code of Flink SQL makes the map keys, so that a null of TIMESTAMP(4..9) or
            DECIMAL(19..38) keeps its place in the row. RocksDB compares map keys by their bytes.
    """

    name: str
    kind: StateKind
    value: Serializer
    map_key: Serializer | None = None
    namespace: Serializer = VOID_NAMESPACE
    codegen: bool = False

    @classmethod
    def timers(
        cls, kind: StateKind, service: str = DEFAULT_TIMER_SERVICE, namespace: Serializer = VOID_NAMESPACE
    ) -> FlinkState:
        """Timers of a timer service.

        Args:
            kind: `EVENT_TIMER` or `PROCESSING_TIMER`.
            service: name of the timer service.
            namespace: serializer of the namespaces.
        """
        return cls(kind.value + service, kind, VOID_NAMESPACE, namespace=namespace)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of its rows."""
        names = [KEY]
        if self.namespace != VOID_NAMESPACE:
            names.append(NAMESPACE)
        if self.kind is StateKind.MAP:
            names.append(MAP_KEY)
        return (*names, TIMESTAMP if self.kind.is_timer else VALUE)


@dataclass(frozen=True, slots=True)
class FlinkOperatorState:
    """List state of an operator that is not keyed.

    Args:
        name: name of the state.
        element: serializer of an element.
        elements: elements, spread over the subtasks in turn. With `UNION` or `BROADCAST`, the mode says what Flink
            restores in each subtask.
        mode: distribution at a restore.
    """

    name: str
    element: Serializer
    elements: Sequence[Any]
    mode: DistributionMode = DistributionMode.SPLIT_DISTRIBUTE


@dataclass(frozen=True, slots=True)
class FlinkOperator:
    """Operator of a savepoint.

    Args:
        uid: uid in the job; None if only the id is known.
        operator_id: 16 bytes, in the order of the printed id.
        key: serializer of the keys; None without keyed state.
        states: keyed states, in the order of their ids.
        max_parallelism: number of key groups, 1 to 32,768. The job must have the same, or not set it.
        operator_states: states that are not keyed.
        codegen: True if generated code of Flink SQL makes the keys; see `FlinkState`. The hash of a key depends on it.
        coordinator_state: state of the operator coordinator, as for a source; None without.
    """

    uid: str | None
    operator_id: bytes
    key: Serializer | None
    states: Sequence[FlinkState] = ()
    max_parallelism: int = DEFAULT_MAX_PARALLELISM
    operator_states: Sequence[FlinkOperatorState] = ()
    codegen: bool = False
    coordinator_state: bytes | None = None

    @classmethod
    def of_uid(
        cls,
        uid: str,
        key: Serializer | None,
        states: Sequence[FlinkState] = (),
        max_parallelism: int = DEFAULT_MAX_PARALLELISM,
        *,
        codegen: bool = False,
    ) -> FlinkOperator:
        """Operator with the id that Flink gives to this uid."""
        return cls(uid, operator_id_of(uid), key, states, max_parallelism, codegen=codegen)

    @property
    def title(self) -> str:
        """Id and uid, for messages."""
        return self.operator_id.hex() + (f" ({self.uid})" if self.uid else "")


@dataclass(frozen=True, slots=True)
class Written:
    """Savepoint that was written.

    Args:
        files: names of the files, `_metadata` last.
        size: bytes of all files.
        rows: rows of each state, by operator id and name of the state: entries of the stream, so a list is one row.
    """

    files: tuple[str, ...]
    size: int
    rows: Mapping[tuple[bytes, str], int] = field(default_factory=dict)
