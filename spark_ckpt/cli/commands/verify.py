"""`spark-ckpt verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import DAMAGED, Session, flink_files_options, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.figures import count, human_size
from spark_ckpt.flink.tables.verify import FlinkDamage, FlinkVerification, verify_flink
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.verify import Remedy, Verification, verify
from spark_ckpt.recovery.damage import Damage

_MAX_LINES = 20


@dataclass(frozen=True, slots=True)
class VerifyResult(Result):
    """The damage found in a location, and the checkpoints that can be restored.

    Args:
        verification: verdicts on the checkpoints read, newest first, and damages of the logs.
    """

    verification: Verification

    def to_json(self) -> JsonObject:
        """The verdicts, newest first, and the damages of the logs."""
        verification = self.verification
        verdicts = [described("verdict", verdict, verdict.record) for verdict in verification.checkpoints]
        return described("verify", verification, checkpoints=verdicts)

    def render(self) -> Iterator[str]:
        """A line for each checkpoint with its damage below, and the remedy at the end."""
        verification = self.verification
        for verdict in verification.checkpoints:
            record = verdict.record
            name = f"checkpoint {record.id}, batch {record.batch_id}"
            read = f"{count(verdict.blocks, 'block')}, {human_size(verdict.size)}"
            if verdict.is_whole:
                logs = (
                    "" if verdict.can_go_back else "; no rollback possible: Spark's log entries of its batch are gone"
                )
                # After a rescale subtasks may share blocks; only Spark can separate their rows.
                rows = "rows not counted" if record.rows and not verdict.rows else count(verdict.rows, "row")
                yield f"{name}: intact; {read}, {rows}{logs}"
            else:
                yield f"{name}: damaged in {count(len(verdict.damages), 'place')}; {read} read"
                yield from _damage_lines(verdict.damages)
        if verification.damages:
            yield f"logs: damaged in {count(len(verification.damages), 'place')}"
            yield from _damage_lines(verification.damages)
        if not verification.is_whole:
            yield _remedy(verification)


@dataclass(frozen=True, slots=True)
class FlinkVerifyResult(Result):
    """The damage found in checkpoints of Flink.

    Args:
        verification: verdicts on the checkpoints read, newest first.
    """

    verification: FlinkVerification

    def to_json(self) -> JsonObject:
        """The verdicts, newest first."""
        verification = self.verification
        verdicts = [described("flink_verdict", each, id=each.checkpoint_id) for each in verification.checkpoints]
        return described("flink_verify", verification, checkpoints=verdicts)

    def render(self) -> Iterator[str]:
        """A line for each checkpoint with its damage and its unknown state below, and the remedy at the end."""
        verification = self.verification
        for verdict in verification.checkpoints:
            what = verdict.path if verdict.checkpoint_id is None else f"checkpoint {verdict.checkpoint_id} of Flink"
            read = f"{count(verdict.handles, 'handle')}, {human_size(verdict.size)}, {count(verdict.rows, 'row')}"
            state = "intact" if verdict.is_whole else f"damaged in {count(len(verdict.damages), 'place')}"
            yield f"{plain(what)}: {state}; {read} read"
            yield from _damage_lines(verdict.damages)
            if verdict.unread:
                yield f"  not checked, because its type is unknown, in {count(len(verdict.unread), 'place')}:"
                yield from _damage_lines(verdict.unread)
        if not verification.is_whole and verification.restorable:
            yield f"the newest intact checkpoint is {verification.restorable[0]}"


def _remedy(verification: Verification) -> str:
    match verification.remedy:
        case Remedy.ROLLBACK:
            newest = verification.restorable[0]
            return f"roll back with: spark-ckpt rollback {plain(verification.location)} --id {newest}"
        case Remedy.COPY:
            return f"the query starts from the newest checkpoint, {verification.restorable[0]}, which is whole"
    return "none of these checkpoints can be restored: recover the files from a backup"


def _damage_lines(damages: Sequence[Damage | FlinkDamage]) -> Iterator[str]:
    for damage in damages[:_MAX_LINES]:
        yield f"  {plain(str(damage))}"
    if len(damages) > _MAX_LINES:
        yield f"  and {len(damages) - _MAX_LINES:,} more (see --json)"


@click.command("verify")
@path_argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), help="Read only this checkpoint.")
@click.option("--all", "everything", is_flag=True, help="Read all retained checkpoints.")
@flink_files_options
@json_option
@pass_session
def verify_checkpoints(
    session: Session,
    location: str,
    checkpoint_id: int | None,
    everything: bool,
    moved: list[tuple[str, str]],
    allow_outside: bool,
) -> None:
    """Read checkpoints in full and report damage.

    LOCATION is the checkpointLocation of a query, or a savepoint, as a path or URL. The query may be running. By
    default the command reads the newest checkpoint and, if it is damaged, earlier ones until one is intact. LOCATION
    may also be a checkpoint, savepoint or job directory of Flink.

    It verifies the log of completed checkpoints; the digest of _metadata; the checksum, position, key group and version
    of each block of state; the number of rows; the agreement with Spark's offsets and commits; and what a start reads
    of Spark's own files. Of Flink, it decodes every entry of every stream, and verifies the key group of each key and
    the checksum of each block of RocksDB.

    \b
    Exit status: 0 no damage, 1 verification failed, 3 damage found.

    \b
    Examples:
      spark-ckpt verify /data/query
      spark-ckpt verify s3://bucket/query --all --json
    """
    if everything and checkpoint_id is not None:
        raise click.UsageError("--all and --id are mutually exclusive")
    with progress_bar("reading") as progress:
        flink = verify_flink(
            location,
            checkpoint_id,
            everything=everything,
            moved=moved,
            allow_outside=allow_outside,
            progress=progress,
        )
        if flink is None:
            storage, checkpoint_id = CheckpointLocation.open(location).copy_source(checkpoint_id)
            verification = verify(storage, checkpoint_id, everything=everything, progress=progress)
    result = VerifyResult(verification) if flink is None else FlinkVerifyResult(flink)
    session.output.show(result)
    if not result.verification.is_whole:
        click.get_current_context().exit(DAMAGED)
