"""Reports of checkpoints for Spark's metrics, its UI and its event log (docs/protocol.md, section 1.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, TypeAlias

from spark_ckpt import __version__
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.statistics import CheckpointStats, Spread, SubtaskStateStats
from spark_ckpt.completed import CheckpointRecord, ClaimRecord, operation_of
from spark_ckpt.config import effective_values
from spark_ckpt.coordinator.failures import Abort
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.statistics import stats_of_failed, stats_of_subtasks
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.location.savepoint_notes import SavepointNote
from spark_ckpt.messages import Ack, Operator, Trigger
from spark_ckpt.redaction import redacted

Report: TypeAlias = dict[str, Any]
"""Fields of a report, as JSON holds them."""

MAX_SUBTASKS = 1000
"""Subtasks in a report: the last to acknowledge. Operators are summarized over all of their subtasks."""

MAX_FENCED = 10
"""Earlier claims in a report: the newest."""

MAX_CAUSE = 1000
"""Characters of a failure's cause."""


class ReportStatus(Enum):
    """Status of a checkpoint in a report; `STARTED` is of the run itself."""

    STARTED = "started"
    TRIGGERED = "triggered"
    PROGRESS = "progress"
    COMPLETED = "completed"
    FAILED = "failed"
    RESTORED = "restored"
    SAVEPOINT = "savepoint"


@dataclass(frozen=True, slots=True)
class Run:
    """Run of a query.

    Args:
        run_id: Spark's id of the run.
        query_id: Spark's id of the query, stable across runs.
        query_name: name given by the user, or None.
        generation: generation of the run's claim.
    """

    run_id: str
    query_id: str
    query_name: str | None
    generation: int

    @classmethod
    def of(cls, trigger: Trigger, generation: int) -> Run:
        """Run that a trigger belongs to."""
        return cls(trigger.job, trigger.query_id, trigger.query_name, generation)


def started(run: Run, trigger: Trigger, job: OpenJob) -> Report:
    """Report of a run that has claimed its location.

    Args:
        run: run of the query.
        trigger: its first trigger.
        job: the open job.
    """
    claims = job.store.claims()
    earlier = [claim for claim in claims if claim.owner.run_id != run.run_id and claim.generation < run.generation]
    own = [claim for claim in claims if claim.generation == run.generation]
    values = effective_values(trigger.settings)
    return {
        **_head(run, ReportStatus.STARTED),
        "location": redacted(trigger.location),
        "host": job.owner.host,
        "pid": job.owner.pid,
        "claimed_ms": own[-1].timestamp_ms if own else None,
        "hung": (own[-1].hung or 0) if own else 0,
        "fenced": [_claim(claim) for claim in earlier[-MAX_FENCED:]],
        "max_parallelism": job.max_parallelism,
        "key_group_factors": list(job.key_group_factors),
        "spark_version": trigger.spark_version,
        "spark_ckpt_version": __version__,
        "settings": [[value.suffix, redacted(value.text), value.is_set, value.default] for value in values],
    }


def _claim(claim: ClaimRecord) -> Report:
    return {
        "generation": claim.generation,
        "host": claim.owner.host,
        "pid": claim.owner.pid,
        "run_id": claim.owner.run_id,
        "claimed_ms": claim.timestamp_ms,
    }


def progress(run: Run, pending: PendingCheckpoint) -> Report:
    """Report of a checkpoint whose subtasks acknowledge."""
    last_ack_ms = max((pending.arrived_ms[key] for key in pending.acks), default=None)
    return {**_head(run, ReportStatus.PROGRESS), **_progress(pending), "last_ack_ms": last_ack_ms}


def triggered(run: Run, pending: PendingCheckpoint) -> Report:
    """Report of a checkpoint whose batch has begun."""
    return {**_head(run, ReportStatus.TRIGGERED), **_progress(pending)}


def completed(
    run: Run,
    operators: Iterable[Operator],
    pending: PendingCheckpoint,
    state: CheckpointState,
    stats: CheckpointStats,
    *,
    detailed: bool = True,
) -> Report:
    """Report of a durable checkpoint.

    Args:
        run: run of the query.
        operators: operators of its batch.
        pending: the checkpoint before completion, with all acks.
        state: the checkpoint with its record.
        stats: its statistics.
        detailed: whether it has operators and subtasks.
    """
    record = state.record
    assert record is not None
    return {
        **_head(run, ReportStatus.COMPLETED),
        **_progress(pending),
        **_durable(state, record),
        "new_bytes": record.new_bytes,
        "duration_ms": stats.duration_ms,
        "completing_ms": stats.completing_ms,
        "failures": dict(stats.failures),
        **(_acknowledged(operators, pending, state.table) if detailed else {}),
    }


def failed(
    run: Run,
    operators: Iterable[Operator],
    pending: PendingCheckpoint,
    abort: Abort,
    now_ms: int,
    *,
    detailed: bool = True,
) -> Report:
    """Report of an aborted checkpoint.

    Args:
        run: run of the query.
        operators: operators of its batch.
        pending: the checkpoint with the acks so far.
        abort: reason of the abort.
        now_ms: time of the abort, milliseconds since 1970 UTC.
        detailed: whether it has operators and subtasks.
    """
    stats = stats_of_failed(pending, abort, now_ms)
    return {
        **_head(run, ReportStatus.FAILED),
        **_progress(pending),
        "failed_ms": now_ms,
        "duration_ms": stats.duration_ms,
        "failures": dict(stats.failures),
        "reason": abort.reason.value,
        "cause": redacted(str(abort))[:MAX_CAUSE],
        **(_acknowledged(operators, pending, {}) if detailed else {}),
    }


def restored(run: Run, state: CheckpointState, path: str, now_ms: int) -> Report:
    """Report of the checkpoint that a run starts from.

    Args:
        run: run of the query.
        state: the checkpoint with its record.
        path: its `_metadata`, as text for people.
        now_ms: time of the start, milliseconds since 1970 UTC.
    """
    record = state.record
    assert record is not None
    return {
        **_head(run, ReportStatus.RESTORED),
        "batch_id": record.batch_id,
        "version": record.version,
        **_durable(state, record),
        "restored_ms": now_ms,
        "path": redacted(path),
        "operation": operation_of(record.owner.run_id),
    }


def savepoint(run: Run, note: SavepointNote) -> Report:
    """Report of the latest savepoint that was taken of the query."""
    return {**_head(run, ReportStatus.SAVEPOINT), **asdict(note)}


def _head(run: Run, status: ReportStatus) -> Report:
    return {"status": status.value, **asdict(run)}


def _durable(state: CheckpointState, record: CheckpointRecord) -> Report:
    return {
        "id": record.id,
        "completed_ms": record.timestamp_ms,
        "state_bytes": record.state_bytes,
        "rows": record.rows,
        "chain_length": _longest(chain for chains in state.table.values() for chain in chains),
    }


def _progress(pending: PendingCheckpoint) -> Report:
    return {
        "batch_id": pending.batch_id,
        "version": pending.version,
        "triggered_ms": pending.triggered_ms,
        "acks": len(pending.acks),
        "expected": pending.expected,
    }


# ---- operators and subtasks ------------------------------------------------------------------------------------------


def _acknowledged(operators: Iterable[Operator], pending: PendingCheckpoint, table: ChainTable) -> Report:
    """Fields `operators` and `subtasks`. `table` is empty if the checkpoint has no chains."""
    subtasks = stats_of_subtasks(pending)
    by_store: dict[StoreKey, list[SubtaskStateStats]] = {}
    for stats in subtasks:
        by_store.setdefault(stats.subtask.of_operator, []).append(stats)
    stores = [(operator, StoreKey(operator.operator_id, store)) for operator in operators for store in operator.stores]
    return {
        "operators": [_store(o, key, by_store.get(key, []), pending, table.get(key, ())) for o, key in stores],
        "subtasks": [_subtask(stats, pending, table) for stats in subtasks[-MAX_SUBTASKS:]],
    }


def _store(
    operator: Operator,
    key: StoreKey,
    subtasks: Sequence[SubtaskStateStats],
    pending: PendingCheckpoint,
    chains: Sequence[Chain],
) -> Report:
    return {
        "operator_id": operator.operator_id,
        "name": operator.name,
        "store": key.store,
        "parallelism": operator.parallelism,
        "acks": len(subtasks),
        "rows": sum(stats.rows for stats in subtasks),
        "new_bytes": sum(_new_bytes(pending.acks[stats.subtask]) for stats in subtasks),
        "state_bytes": sum(chain.size for chain in chains) if chains else None,
        "chain_length": _longest(chains) if chains else None,
        "acknowledged_ms": _spread(_acknowledged_ms(stats.subtask, pending) for stats in subtasks),
        "start_delay_ms": _spread(stats.start_delay_ms for stats in subtasks),
        "restore_us": _spread(_restore_us(pending.acks[stats.subtask]) for stats in subtasks),
        "snapshot_us": _spread(stats.snapshot_us for stats in subtasks),
        "write_us": _spread(stats.write_us for stats in subtasks),
        "acknowledge_us": _spread(pending.acknowledge_us.get(stats.subtask) for stats in subtasks),
        "subtask_new_bytes": _spread(_new_bytes(pending.acks[stats.subtask]) for stats in subtasks),
        "subtask_state_bytes": _spread(chain.size for chain in chains),
        "subtask_rows": _spread(stats.rows for stats in subtasks),
    }


def _subtask(stats: SubtaskStateStats, pending: PendingCheckpoint, table: ChainTable) -> list[Any]:
    key = stats.subtask
    chains = table.get(key.of_operator)
    chain = chains[key.partition] if chains else None
    return [
        key.operator_id,
        key.store,
        key.partition,
        stats.executor,
        _acknowledged_ms(key, pending),
        stats.start_delay_ms,
        stats.snapshot_us,
        stats.write_us,
        _new_bytes(pending.acks[key]),
        None if chain is None else chain.size,
        None if chain is None else len(chain.entries),
        stats.rows,
        _restore_us(pending.acks[key]),
        pending.acknowledge_us.get(key),
    ]


def _spread(figures: Iterable[int | None]) -> list[int] | None:
    """Least, mean and most of the known figures; None if none is known."""
    known = [figure for figure in figures if figure is not None]
    if not known:
        return None
    spread = Spread.of(known)
    return [spread.least, spread.mean, spread.most]


def _restore_us(ack: Ack) -> int | None:
    """Microseconds in which the store loaded state for the batch; None if it had the state in memory."""
    return ack.timings_us.get("restore")


def _acknowledged_ms(key: SubtaskKey, pending: PendingCheckpoint) -> int:
    """Milliseconds from the trigger to the ack."""
    return max(0, pending.arrived_ms[key] - pending.triggered_ms)


def _new_bytes(ack: Ack) -> int:
    return ack.delta.size + sum(brought.segment.size for brought in (ack.base, ack.merged) if brought is not None)


def _longest(chains: Iterable[Chain]) -> int:
    """Segments of the longest chain."""
    return max((len(chain.entries) for chain in chains), default=0)
