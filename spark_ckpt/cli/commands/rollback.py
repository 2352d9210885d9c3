"""`spark-ckpt rollback`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    dry_run_option,
    force_option,
    json_option,
    pass_session,
    path_argument,
    settings_option,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.figures import count, human_size
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.recovery.rollback import Rollback


@dataclass(frozen=True, slots=True)
class RollbackResult(Result):
    """A query rolled back to an earlier checkpoint.

    Args:
        rollback: the checkpoint, and the moved files.
    """

    rollback: Rollback

    def to_json(self) -> JsonObject:
        """The checkpoint, and the files moved aside."""
        rollback = self.rollback
        return described("rollback", rollback, rollback.checkpoint, aside=rollback.rollback_dir)

    def render(self) -> Iterator[str]:
        """The next batch of the query, and the undone batches and checkpoints."""
        rollback, checkpoint = self.rollback, self.rollback.checkpoint
        resumes = "would resume" if rollback.dry_run else "resumes"
        yield f"the query {resumes} from checkpoint {checkpoint.id}, with batch {checkpoint.batch_id + 1}"
        batches = _numbered("batch", "batches", rollback.batches)
        undone = f"{batches} and {_numbered('checkpoint', 'checkpoints', rollback.checkpoints)}"
        if rollback.dry_run:
            yield f"{undone} would be moved to {plain(rollback.location)}/{rollback.rollback_dir.partition('/')[0]}"
        else:
            files = f"{count(len(rollback.moved), 'file')}, {human_size(rollback.size)}"
            yield f"{undone} moved to {plain(rollback.location)}/{rollback.rollback_dir}: {files}"


def _numbered(one: str, many: str, numbers: tuple[int, ...]) -> str:
    if not numbers:
        return f"no {one}"
    if len(numbers) == 1:
        return f"{one} {numbers[0]}"
    return f"{many} {numbers[0]} to {numbers[-1]}"


@click.command("rollback")
@path_argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), required=True, help="Checkpoint to roll back to.")
@force_option
@settings_option
@dry_run_option
@json_option
@pass_session
def roll_back_query(
    session: Session, location: str, checkpoint_id: int, force: bool, settings: dict[str, str], dry_run: bool
) -> None:
    """Roll a stopped query back to an earlier checkpoint.

    LOCATION is the checkpointLocation of the query, as a path or URL. `spark-ckpt list` shows the ids. The checkpoint
    is first read in full. Later entries of Spark's offsets and commits, later checkpoints and their state files are
    moved to LOCATION/rolled-back/; nothing is deleted. At its next start the query resumes after the batch of the
    checkpoint. Its sink keeps the output of later batches; a sink that identifies batches by id ignores their
    repetition.

    The last claim in the log tells whether a driver may be running. On this host the command looks up its process. A
    driver elsewhere is fenced off; on object stores, the command waits 20 seconds for its writes. It refuses if the
    claim shows a driver that does not respect the fence, as with earlier releases. --force claims the location anyway.

    If the command is interrupted, run it again: until then, no query starts.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt rollback /data/query --id 17 --dry-run
      spark-ckpt rollback s3://bucket/query --id 17 --force
    """
    storage = CheckpointLocation.open(location).of_query()
    with progress_bar("reading") as progress:
        rollback = roll_back(storage, checkpoint_id, settings=settings, force=force, dry_run=dry_run, progress=progress)
    session.output.show(RollbackResult(rollback))
