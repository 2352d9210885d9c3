"""Master states `spark-history` and `spark-subtasks`, with statistics (docs/protocol.md, section 4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from spark_ckpt.checkpoint.statistics import (
    CheckpointStats,
    CheckpointStatus,
    Spread,
    StateSize,
    SubtaskStateStats,
    SubtaskStats,
)
from spark_ckpt.errors import CheckpointError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.metadata import CheckpointMetadata, MasterState

SPARK_HISTORY = "spark-history"
"""Name of the master state with the statistics of the last checkpoints."""

SPARK_HISTORY_VERSION = 1
"""Version of its format."""

SPARK_SUBTASKS = "spark-subtasks"
"""Name of the master state with the statistics of the checkpoint's own subtasks."""

SPARK_SUBTASKS_VERSION = 1
"""Version of its format."""

_MAX_DETAIL = 300

_Item = TypeVar("_Item")


def statistics_states(
    entries: Iterable[CheckpointStats], subtasks: Iterable[SubtaskStateStats]
) -> tuple[MasterState, ...]:
    """Both master states of a checkpoint.

    Args:
        entries: statistics of the last checkpoints, including this one.
        subtasks: statistics of its subtasks.
    """
    return (
        MasterState(SPARK_HISTORY, encode_history(entries), SPARK_HISTORY_VERSION),
        MasterState(SPARK_SUBTASKS, encode_subtasks(subtasks), SPARK_SUBTASKS_VERSION),
    )


def encode_history(entries: Iterable[CheckpointStats]) -> bytes:
    """Payload of the master state `spark-history`: JSON, a few hundred bytes per entry."""
    return f"[{','.join(map(_encode, entries))}]".encode()


def history_of(metadata: CheckpointMetadata) -> tuple[CheckpointStats, ...] | None:
    """Statistics in a `_metadata`, oldest first; None without statistics in this version of the format.

    Raises:
        CheckpointError: malformed payload.
    """
    return _items_of(metadata, SPARK_HISTORY, SPARK_HISTORY_VERSION, _stats)


def encode_subtasks(subtasks: Iterable[SubtaskStateStats]) -> bytes:
    """Payload of the master state `spark-subtasks`: JSON, about fifty bytes per subtask."""
    return msgspec.json.encode([_fields(stats) for stats in subtasks])


def subtasks_of(metadata: CheckpointMetadata) -> tuple[SubtaskStateStats, ...] | None:
    """Statistics of a checkpoint's subtasks, in the order of their acks; None without statistics in this version of the
    format.

    Raises:
        CheckpointError: malformed payload.
    """
    return _items_of(metadata, SPARK_SUBTASKS, SPARK_SUBTASKS_VERSION, lambda fields: _subtask(*fields))


def _encode(stats: CheckpointStats) -> str:
    fields: dict[str, Any] = {
        "id": stats.checkpoint_id,
        "status": stats.status.value,
        "batch_id": stats.batch_id,
        "version": stats.version,
        "triggered_ms": stats.triggered_ms,
        "duration_ms": stats.duration_ms,
        "completing_ms": stats.completing_ms,
        "acks": stats.acks,
        "expected": stats.expected,
        "failures": stats.failures,
        "detail": stats.detail[:_MAX_DETAIL] if stats.detail else None,
    }
    if stats.operation is not None:
        fields["operation"] = stats.operation
    if (size := stats.size) is not None:
        fields |= {"state_bytes": size.state_bytes, "new_bytes": size.new_bytes, "rows": size.rows}
    if (subtasks := stats.subtasks) is not None:
        fields |= {
            "snapshot_us": _spread(subtasks.snapshot_us),
            "write_us": _spread(subtasks.write_us),
            "start_delay_ms": _spread(subtasks.start_delay_ms),
            "slowest": [_fields(slow) for slow in subtasks.slowest],
        }
    present = {name: value for name, value in fields.items() if value not in (None, {})}
    return json.dumps(present, separators=(",", ":"))


def _spread(spread: Spread) -> list[int]:
    return [spread.least, spread.mean, spread.most]


def _items_of(
    metadata: CheckpointMetadata, name: str, version: int, parse: Callable[[Any], _Item]
) -> tuple[_Item, ...] | None:
    """Items of a master state whose payload is a JSON list; None without a master state of this name and version."""
    for state in metadata.master_states:
        if state.name == name and state.version == version:
            try:
                return tuple(map(parse, json.loads(state.payload)))
            except (KeyError, TypeError, ValueError, AttributeError) as e:
                raise CheckpointError(f"the master state {name} is not what spark-ckpt writes: {e!r}") from e
    return None


def _stats(fields: Mapping[str, Any]) -> CheckpointStats:
    size = None
    if "state_bytes" in fields:
        size = StateSize(int(fields["state_bytes"]), int(fields["new_bytes"]), int(fields["rows"]))
    subtasks = None
    if "slowest" in fields:
        subtasks = SubtaskStats(
            Spread(*map(int, fields["snapshot_us"])),
            Spread(*map(int, fields["write_us"])),
            Spread(*map(int, fields["start_delay_ms"])),
            tuple(_subtask(*slow) for slow in fields["slowest"]),
        )
    return CheckpointStats(
        status=CheckpointStatus(fields["status"]),
        batch_id=int(fields["batch_id"]),
        version=int(fields["version"]),
        triggered_ms=int(fields["triggered_ms"]),
        duration_ms=int(fields["duration_ms"]),
        acks=int(fields["acks"]),
        expected=int(fields["expected"]),
        checkpoint_id=fields.get("id"),
        completing_ms=fields.get("completing_ms"),
        failures={str(reason): int(count) for reason, count in fields.get("failures", {}).items()},
        detail=fields.get("detail"),
        size=size,
        subtasks=subtasks,
        operation=None if fields.get("operation") is None else str(fields["operation"]),
    )


def _fields(stats: SubtaskStateStats) -> list[int | str]:
    subtask, executor, *measured = stats
    return [*subtask, executor, *measured]


def _subtask(operator_id: int, store: str, partition: int, executor: str, *measured: int) -> SubtaskStateStats:
    return SubtaskStateStats(SubtaskKey(operator_id, store, partition), executor, *map(int, measured))
