"""`spark-ckpt mirror`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, json_option, pass_session, path_argument
from spark_ckpt.cli.output import JsonOutput, Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.watch import INTERRUPTED, interval
from spark_ckpt.clock import SystemClock
from spark_ckpt.config import units
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.figures import count, human_size, iso_time
from spark_ckpt.location.errors import NoCheckpointError
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.mirror.following import LocationMirror, MirroredCheckpoint
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class MirrorResult(Result):
    """A mirror and its newest checkpoint.

    Args:
        source: location of the query.
        target: the mirror.
        mirrored: the newest checkpoint; without copied files if it was there already.
    """

    source: str
    target: str
    mirrored: MirroredCheckpoint

    def to_json(self) -> JsonObject:
        """The checkpoint, and what was copied for it."""
        checkpoint = self.mirrored.checkpoint
        return described("mirror", self, self.mirrored, checkpoint, timestamp=iso_time(checkpoint.timestamp_ms))

    def render(self) -> Iterator[str]:
        """The batch, the lag, and the copied files."""
        mirrored, batch = self.mirrored, self.mirrored.checkpoint.batch_id
        if not mirrored.files:
            yield f"{plain(self.target)}: batch {batch} is there already"
            return
        files = f"{count(mirrored.files, 'file')}, {human_size(mirrored.size)}"
        held = ", kept at the source by a tag meanwhile" if mirrored.is_held else ""
        yield f"batch {batch}, {mirrored.lag_ms / 1000:.2f} s after its checkpoint: {files}{held}"


def _rate(_: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        rate = units.size(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error
    if rate < 1:
        raise click.BadParameter("a rate is at least one byte per second", param=parameter)
    return rate


@click.command("mirror")
@path_argument("source")
@path_argument("target")
@click.option("--follow", is_flag=True, help="Copy later checkpoints too, until Ctrl-C.")
@click.option(
    "--every", "seconds", default="1s", metavar="TIME", callback=interval, show_default=True, help="Pause of --follow."
)
@click.option(
    "--retained", type=click.IntRange(min=1), default=2, show_default=True, help="Checkpoints that TARGET keeps."
)
@click.option("--max-rate", metavar="SIZE", callback=_rate, help="Average bytes per second, such as 50mb.")
@json_option
@pass_session
def mirror_query(
    session: Session, source: str, target: str, follow: bool, seconds: float, retained: int, max_rate: int | None
) -> None:
    """Keep a copy of a query's location that follows it.

    SOURCE is the checkpointLocation of a query, which may be running. TARGET is an empty directory on any file system,
    or a mirror of the same query; nothing is written to SOURCE but a tag, if its checkpoints are dropped faster than
    they can be copied.

    TARGET is a checkpoint location at any moment: a kill leaves each checkpoint whole or absent, and the next run
    continues. The mirror has the same query id, and ids of checkpoints of its own. A query that starts there ends
    the mirror; `spark-ckpt failover` also fences the query at SOURCE before.

    A rollback to before the mirror's newest batch and an evolution end it, too: begin a new one.

    \b
    Exit status: 0 done, 1 failed, 5 TARGET is no such mirror, or the query went back, 130 ended by Ctrl-C.

    \b
    Examples:
      spark-ckpt mirror s3://bucket/query s3://other-region/query --follow
      spark-ckpt mirror /data/query /backup/query --retained 5 --max-rate 50mb
    """
    origin, new = CheckpointLocation.open(source).of_query(), storage_at(target)
    mirror = LocationMirror.open(origin, new, retained=retained, bytes_per_second=max_rate)
    try:
        if follow:
            _follow(session, mirror, origin, new, seconds)
        session.output.show(_result(origin, new, mirror.step() or _there_already(mirror, origin)))
    finally:
        mirror.close()


def _result(source: Storage, target: Storage, mirrored: MirroredCheckpoint) -> MirrorResult:
    return MirrorResult(source.location, target.location, mirrored)


def _there_already(mirror: LocationMirror, source: Storage) -> MirroredCheckpoint:
    if mirror.last is None:
        raise NoCheckpointError(source.location)
    return MirroredCheckpoint(None, mirror.last, 0, 0, 0, False)


def _follow(
    session: Session,
    mirror: LocationMirror,
    source: Storage,
    target: Storage,
    seconds: float,
) -> NoReturn:
    """Shows each checkpoint until Ctrl-C. Errors that may pass are reported once, and the copy is tried again."""
    clock, reported = SystemClock(), None
    if isinstance(session.output, JsonOutput):
        session.output.is_on_one_line = True
    try:
        while True:
            try:
                mirrored = mirror.step()
                reported = None
            except SparkCkptError as error:
                if getattr(error, "fatal", False):
                    raise
                mirrored = None
                if str(error) != reported:
                    reported = str(error)
                    session.output.error(error)
            if mirrored is None:
                clock.sleep(seconds)
            else:
                session.output.show(_result(source, target, mirrored))
                sys.stdout.flush()
    except KeyboardInterrupt:
        click.get_current_context().exit(INTERRUPTED)
