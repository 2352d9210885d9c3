"""Checks of files beside the checkpoints: orphans, and what interrupted operations left."""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.errors import CheckpointError, StorageError
from spark_ckpt.figures import count, human_size
from spark_ckpt.location.import_marker import read_marker
from spark_ckpt.location.orphans import list_all
from spark_ckpt.operations.advice import Step
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.doctor.findings import Finding, Status, command_line
from spark_ckpt.operations.gc import collect_garbage
from spark_ckpt.spark_files.rollbacks import NOT_FINISHED, ROLLBACK, Rollbacks
from spark_ckpt.spark_files.rollbacks import read_marker as read_rollback

FILES = "files"
UNFINISHED = "unfinished operations"


def check_files(evidence: Evidence) -> Iterator[Finding]:
    """Files of the location, and the orphans among them."""
    there = list_all(evidence.storage)
    size = sum(file.size for file in there.state)
    found = collect_garbage(
        evidence.storage, dry_run=True, earlier_states=evidence.earlier_states, clock=evidence.clock
    )
    data = {
        "files": len(there.state),
        "bytes": size,
        "orphans": len(found.orphans),
        "orphan_bytes": found.size,
        "foreign": len(found.foreign),
        "earlier_bytes": 0 if found.earlier is None else found.earlier.size,
    }
    answer = f"{count(len(there.state), 'file')}, {human_size(size)}"
    if found.foreign:
        answer += f"; {count(len(found.foreign), 'file')} not written by spark-ckpt, such as {found.foreign[0].path}"
    if not found.orphans and found.earlier is None:
        yield Finding(FILES, Status.OK, f"{answer}; no orphans older than a day", data=data)
        return
    parts = [f"{count(len(found.orphans), 'orphan')}, {human_size(found.size)}"] if found.orphans else []
    if found.earlier is not None:
        parts.append(f"state of the earlier provider ({found.earlier.provider}), {human_size(found.earlier.size)}")
    yield Finding(
        FILES,
        Status.WARNING,
        f"{answer}; {'; '.join(parts)}",
        Step.COLLECT.say(),
        command_line("gc", evidence.location),
        data,
    )


def check_unfinished(evidence: Evidence) -> Iterator[Finding]:
    """Rollbacks, imports and rescales that were interrupted."""
    rollbacks = Rollbacks.of(evidence.storage)
    marker = read_marker(evidence.storage)
    partitions = _begun_rescale(evidence)
    if rollbacks.unfinished:
        target, operation = _target_and_operation(evidence, rollbacks.unfinished[-1])
        changes = operation != ROLLBACK
        yield Finding(
            UNFINISHED,
            Status.PROBLEM,
            f"'spark-ckpt {operation}' has not finished: no query starts"
            if changes
            else f"{NOT_FINISHED}: no query starts",
            Step.REPEAT_CHANGE.say(operation=operation) if changes else Step.REPEAT_ROLLBACK.say(),
            command_line("rollback", evidence.location, "--id", target),
            {"operation": operation, "log_epochs": list(rollbacks.unfinished)},
        )
    if marker is not None and marker.checkpoint_id is None:
        yield Finding(
            UNFINISHED,
            Status.WARNING,
            f"an import of state from {marker.provider} has not finished: no query starts",
            Step.REPEAT_IMPORT.say(),
            data={"operation": "import", "batch_id": marker.batch_id},
        )
    if partitions is not None:
        yield Finding(
            UNFINISHED,
            Status.WARNING,
            f"a rescale to {partitions} partitions has begun and not finished: no query starts",
            Step.REPEAT_RESCALE.say(),
            command_line("rescale", evidence.location, "--partitions", partitions),
            {"operation": "rescale", "partitions": partitions},
        )
    if not rollbacks.unfinished and partitions is None and (marker is None or marker.checkpoint_id is not None):
        undo = "; the import of its state can still be undone" if marker is not None and marker.can_be_undone else ""
        yield Finding(UNFINISHED, Status.OK, f"none{undo}", data={"log_epoch": rollbacks.epoch})


def _target_and_operation(evidence: Evidence, epoch: int) -> tuple[int | str, str]:
    """Checkpoint that a rollback goes back to, or that was there before a change, and the operation. A placeholder if
    its marker or the log does not tell."""
    try:
        begun = read_rollback(evidence.storage, epoch)
    except (StorageError, CheckpointError):
        return "ID", ROLLBACK
    checkpoints = reversed(evidence.checkpoints)
    return next((record.id for record in checkpoints if record.batch_id == begun.batch_id), "ID"), begun.operation


def _begun_rescale(evidence: Evidence) -> int | None:
    """Number of partitions of a rescale whose batch has begun; None without one."""
    batches, log = evidence.batches, evidence.log
    committed = batches.last_committed
    if not batches.started or committed not in batches.started or batches.started[-1] != committed + 1:
        return None
    before, begun = log.offsets(committed), log.offsets(committed + 1)
    partitions = begun.shuffle_partitions
    if partitions is None or partitions == before.shuffle_partitions:
        return None
    return partitions if begun == before.with_shuffle_partitions(partitions) else None
