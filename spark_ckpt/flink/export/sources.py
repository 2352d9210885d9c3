"""Sources of a query as sources of a Flink job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_ckpt.checkpoint.sources import SourceState, sources_of
from spark_ckpt.flink.export.kafka import kafka_source, starting_offsets
from spark_ckpt.flink.export.model import FlinkOperator, FlinkOperatorState
from spark_ckpt.flink.export.operator_id import operator_id_of
from spark_ckpt.flink.export.source_operator import offsets_of
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.spark_files.source_positions import KafkaPosition
from spark_ckpt.state.catalog import StateCatalog
from spark_ckpt.state.errors import StateNotFoundError

ONLY = ""
"""Name that stands for the only source of a query."""

OPAQUE_STATE = "sparkOffset"
"""Operator state with the text of an offset that no source of Flink knows: a list with one string."""


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source of the query.

    Args:
        source: its name and positions.
        operator: the source of the Flink job with its positions; None if they are only reported.
        java: expression in Java for its positions; empty if it is not Kafka.
    """

    source: SourceState
    operator: FlinkOperator | None
    java: str


def plan_sources(catalog: StateCatalog, uids: Mapping[str, str], max_parallelism: int) -> tuple[PlannedSource, ...]:
    """Sources of a query, in the order of the query.

    Args:
        catalog: state of the checkpoint.
        uids: uid in the Flink job by name of the source; the name `ONLY` stands for the only one.
        max_parallelism: number of key groups of the job.

    Raises:
        StateNotFoundError: no such source, or one must be named, or it has no offset yet.
    """
    sources = sources_of(catalog.found.metadata, catalog.batch)
    names = [source.name for source in sources]
    if ONLY in uids and len(sources) != 1:
        raise StateNotFoundError(catalog.location, "name the source in front of its uid, as in 0=orders", names)
    by_name = {names[0] if name == ONLY else name: uid for name, uid in uids.items()}
    if unknown := sorted(by_name.keys() - set(names)):
        raise StateNotFoundError(catalog.location, f"no source {unknown[0]!r}", names)
    return tuple(_planned(catalog, source, by_name.get(source.name), max_parallelism) for source in sources)


def _planned(catalog: StateCatalog, source: SourceState, uid: str | None, max_parallelism: int) -> PlannedSource:
    kafka = [position for position in source.positions if isinstance(position, KafkaPosition)]
    java = starting_offsets(kafka) if kafka else ""
    if uid is None:
        return PlannedSource(source, None, java)
    operator_id = operator_id_of(uid)
    if kafka:
        return PlannedSource(source, kafka_source(uid, operator_id, kafka, max_parallelism), java)
    offsets = offsets_of(catalog)
    text = None if offsets is None else offsets.offsets.get(source.name)
    if text is None:
        raise StateNotFoundError(catalog.location, f"source {source.name!r} has no offset yet", ())
    state = FlinkOperatorState(OPAQUE_STATE, STRING, [text])
    operator = FlinkOperator(uid, operator_id, None, max_parallelism=max_parallelism, operator_states=(state,))
    return PlannedSource(source, operator, java)
