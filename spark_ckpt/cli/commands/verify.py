"""`spark-ckpt verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    DAMAGED,
    Session,
    checkpoint_options,
    flink_files_options,
    json_option,
    operator_option,
    pass_session,
    path_argument,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.edit import Absence, verify_absent
from spark_ckpt.edit.row_input import read_rows
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


@dataclass(frozen=True, slots=True)
class AbsenceResult(Result):
    """Grouping keys that were searched in every block.

    Args:
        absence: the blocks that have one of them.
    """

    absence: Absence

    def to_json(self) -> JsonObject:
        """The numbers of files and blocks, and the blocks with one of the keys."""
        return described("absence", self.absence)

    def render(self) -> Iterator[str]:
        """A line for each block with one of the keys, and what was not searched."""
        absence = self.absence
        read = f"{count(absence.blocks, 'block')} in {count(absence.files, 'file')}"
        if absence.traces:
            yield f"{plain(absence.location)}: found in {count(len(absence.traces), 'block')}; {read} read"
        else:
            yield f"{plain(absence.location)}: absent from {read}"
        for trace in absence.traces[:_MAX_LINES]:
            where = f"{plain(trace.name)} at byte {trace.offset:,}, key group {trace.key_group}"
            yield f"  {where}: {count(trace.keys, 'key')} of {plain(trace.store)}/{plain(trace.variable)}"
        if len(absence.traces) > _MAX_LINES:
            yield f"  and {len(absence.traces) - _MAX_LINES:,} more (see --json)"
        yield "not searched: other savepoints, values, state of an earlier provider, sources and sinks"


@click.command("verify")
@path_argument("location")
@click.option("--absent", metavar="KEYS", help="Search all files for these grouping keys instead: a file, or JSON.")
@operator_option
@checkpoint_options(default="the newest, and earlier ones until one is intact")
@click.option("--all", "everything", is_flag=True, help="Read all retained checkpoints, and those with a tag.")
@flink_files_options
@json_option
@pass_session
def verify_checkpoints(
    session: Session,
    location: str,
    checkpoint_id: int | None,
    everything: bool,
    absent: str | None,
    operator: int | str | None,
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

    With --absent, it proves instead that grouping keys are gone: it decodes every block of every file below LOCATION,
    needed or not, and reports those with one of KEYS (see `spark-ckpt erase`).

    \b
    Exit status: 0 no damage or no such key, 1 verification failed, 3 damage or a key found.

    \b
    Examples:
      spark-ckpt verify /data/query
      spark-ckpt verify s3://bucket/query --all --json
      spark-ckpt verify /data/query --absent '{"user": "alice"}'
    """
    if absent is not None:
        if everything or checkpoint_id is not None:
            raise click.UsageError("--absent searches all checkpoints: omit --all, --id and --at")
        with progress_bar("reading") as progress:
            absence = verify_absent(location, partial(read_rows, absent), operator=operator, progress=progress)
        session.output.show(AbsenceResult(absence))
        click.get_current_context().exit(DAMAGED if absence.traces else 0)
    if operator is not None:
        raise click.UsageError("--operator needs --absent")
    if everything and checkpoint_id is not None:
        raise click.UsageError("--all excludes --id and --at")
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
