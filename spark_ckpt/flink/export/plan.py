"""Plan of an export to Flink: the operator of Spark, the operator of Flink, and their states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from spark_ckpt.flink.export.export_type import ExportType
from spark_ckpt.flink.export.model import DEFAULT_MAX_PARALLELISM, FlinkOperator
from spark_ckpt.flink.export.operator_id import operator_id_of
from spark_ckpt.flink.export.operators.aggregation import aggregation
from spark_ckpt.flink.export.operators.deduplication import deduplication, deduplication_within_watermark
from spark_ckpt.flink.export.operators.joins import join
from spark_ckpt.flink.export.operators.map_groups import map_groups
from spark_ckpt.flink.export.operators.session_windows import session_windows
from spark_ckpt.flink.export.operators.transform_with_state import transform_with_state
from spark_ckpt.flink.export.planned_state import PlannedState
from spark_ckpt.flink.export.source_operator import Forms, SourceOperator
from spark_ckpt.flink.export.sources import PlannedSource, plan_sources
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.spark_files.operators import JOIN, REAL_TIME_AGGREGATION, SESSION_WINDOW, TRANSFORM_WITH_STATE
from spark_ckpt.state.catalog import StateCatalog

_Mapping: TypeAlias = Callable[[SourceOperator], list[PlannedState]]

_AGGREGATES = ("stateStoreSave", REAL_TIME_AGGREGATION)
_MAPPINGS: Mapping[str, _Mapping] = {
    **dict.fromkeys(TRANSFORM_WITH_STATE, transform_with_state),
    **dict.fromkeys(_AGGREGATES, aggregation),
    "dedupe": deduplication,
    "dedupeWithinWatermark": deduplication_within_watermark,
    SESSION_WINDOW: session_windows,
    "flatMapGroupsWithState": map_groups,
    "applyInPandasWithState": map_groups,
    JOIN: join,
}


@dataclass(frozen=True, slots=True)
class Target:
    """Operator of the Flink job.

    Args:
        operator_id: 16 bytes, in the order of the printed id.
        uid: its uid; None if only the id is known.
        max_parallelism: number of key groups of the job.
    """

    operator_id: bytes
    uid: str | None = None
    max_parallelism: int = DEFAULT_MAX_PARALLELISM

    @classmethod
    def of_uid(cls, uid: str, max_parallelism: int = DEFAULT_MAX_PARALLELISM) -> Target:
        """Operator with the id that Flink gives to this uid."""
        return cls(operator_id_of(uid), uid, max_parallelism)

    @property
    def title(self) -> str:
        """Id and uid, for messages."""
        return FlinkOperator(self.uid, self.operator_id, None).title


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Export of an operator.

    Args:
        source: the operator of Spark.
        operator: the operator of Flink.
        key: type of its keys.
        states: its states.
        sources: sources of the query.
    """

    source: SourceOperator
    operator: FlinkOperator
    key: ExportType
    states: Sequence[PlannedState]
    sources: Sequence[PlannedSource] = ()

    @property
    def operators(self) -> list[FlinkOperator]:
        """All operators of the savepoint: the one with the states, and sources with positions."""
        return [self.operator, *(each.operator for each in self.sources if each.operator is not None)]

    def rows(self) -> dict[str, Iterator[pa.RecordBatch]]:
        """Rows of each state, read on demand."""
        return {planned.state.name: planned.batches(self.operator.title) for planned in self.states}


def plan_operator(
    catalog: StateCatalog,
    operator: int | str | None,
    target: Target,
    forms: Forms,
    source_uids: Mapping[str, str] | None = None,
) -> Plan:
    """Plan of the export of an operator. Reads no row.

    Args:
        catalog: state of the checkpoint.
        operator: Spark's operator number; None if only one is stateful.
        target: operator of the Flink job.
        forms: types of its keys and values.
        source_uids: uids of sources of the Flink job, as in `plan_sources`.

    Raises:
        StateNotFoundError: no such operator or source, or one must be selected.
        UnsupportedForFlinkError: the operator, its keys or its values cannot be in a savepoint of Flink.
        UnsupportedStateError: only Spark can read the state.
    """
    stores = tuple(catalog.of_operator(operator))
    source = SourceOperator(catalog, stores, target.title, forms)
    mapping = _MAPPINGS.get(source.name)
    if mapping is None:
        raise source.refused(f"{source.name} of Spark has no counterpart in keyed state of Flink")
    if forms.is_sql and source.name not in _AGGREGATES:
        raise source.refused(f"{source.name} is no aggregate: export without --sql-aggregate")
    states = mapping(source)
    if not states:
        raise source.refused(f"{source.name} has no state variable")
    key = states[0].key
    flink_operator = FlinkOperator(
        target.uid,
        target.operator_id,
        key.serializer,
        tuple(planned.state for planned in states),
        _max_parallelism(target, states[0], forms),
        codegen=forms.is_sql,
    )
    sources = plan_sources(catalog, source_uids or {}, target.max_parallelism)
    return Plan(source, flink_operator, key, states, sources)


def _max_parallelism(target: Target, state: PlannedState, forms: Forms) -> int:
    """Number of key groups of the operator.

    Flink SQL runs an aggregate without grouping with one, whatever the job has.
    """
    is_global = isinstance(state.key.serializer, RowDataSerializer) and not state.key.serializer.types
    return 1 if forms.is_sql and is_global else target.max_parallelism
