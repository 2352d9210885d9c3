"""The result of `spark-ckpt verify`, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spark_ckpt.cli.summary import count, human_size, plain
from spark_ckpt.operations.damage import Damage
from spark_ckpt.operations.verifying import CheckpointVerdict, Verification

_MOST_LINES = 20


def describe_verification(verification: Verification) -> dict[str, Any]:
    """`{"location", "whole", "checkpoints", "damages", "restorable"}`, checkpoints newest first."""
    return {
        "location": verification.location,
        "whole": verification.is_whole,
        "checkpoints": [_describe_verdict(verdict) for verdict in verification.checkpoints],
        "damages": [_describe_damage(damage) for damage in verification.damages],
        "restorable": list(verification.restorable),
    }


def verification_lines(verification: Verification) -> Iterator[str]:
    """A line for each checkpoint, what is wrong below it, and the way out at the end."""
    for verdict in verification.checkpoints:
        record = verdict.record
        name = f"checkpoint {record.id}, batch {record.batch_id}"
        read = f"{count(verdict.blocks, 'block')}, {human_size(verdict.size)}"
        if verdict.is_whole:
            logs = "" if verdict.can_go_back else "; Spark's logs have not what going on from it needs"
            # After a rescale subtasks can share blocks, and then it takes Spark to tell their rows apart.
            rows = "rows not counted" if record.rows and not verdict.rows else count(verdict.rows, "row")
            yield f"{name}: whole; {read}, {rows}{logs}"
        else:
            yield f"{name}: damaged in {count(len(verdict.damages), 'place')}; {read} read"
            yield from _damage_lines(verdict.damages)
    if verification.damages:
        yield f"the logs: damaged in {count(len(verification.damages), 'place')}"
        yield from _damage_lines(verification.damages)
    if not verification.is_whole:
        yield _way_out(verification)


def _way_out(verification: Verification) -> str:
    if not verification.restorable:
        return "none of these checkpoints can be restored: bring the files back from a copy"
    newest = verification.restorable[0]
    if verification.checkpoints[0].record.id == newest:
        return f"the newest checkpoint, {newest}, can be restored"
    return f"go back with: spark-ckpt rollback {plain(verification.location)} --id {newest}"


def _damage_lines(damages: Sequence[Damage]) -> Iterator[str]:
    for damage in damages[:_MOST_LINES]:
        yield f"  {plain(str(damage))}"
    if len(damages) > _MOST_LINES:
        yield f"  and {len(damages) - _MOST_LINES:,} more, which --json lists"


def _describe_verdict(verdict: CheckpointVerdict) -> dict[str, Any]:
    return {
        "id": verdict.record.id,
        "batch_id": verdict.record.batch_id,
        "version": verdict.record.version,
        "whole": verdict.is_whole,
        "can_go_back": verdict.can_go_back,
        "blocks": verdict.blocks,
        "bytes": verdict.size,
        "rows": verdict.rows,
        "damages": [_describe_damage(damage) for damage in verdict.damages],
    }


def _describe_damage(damage: Damage) -> dict[str, Any]:
    return {
        "path": damage.path,
        "reason": damage.reason,
        "offset": damage.offset,
        "subtask": None if damage.subtask is None else damage.subtask._asdict(),
        "key_group": damage.key_group,
    }
