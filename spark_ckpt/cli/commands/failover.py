"""`spark-ckpt failover`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, json_option, pass_session, path_argument, settings_option
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.figures import count
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.operations.mirror.failover import Failover, fail_over, source_of


@dataclass(frozen=True, slots=True)
class FailoverResult(Result):
    """A mirror that has become the location of its query.

    Args:
        failover: what was done.
    """

    failover: Failover

    def to_json(self) -> JsonObject:
        """The mirror, its source, and the checkpoint that the query continues from."""
        return described("failover", self.failover, self.failover.checkpoint)

    def render(self) -> Iterator[str]:
        """What was done, and what it cannot promise."""
        failover, batch = self.failover, self.failover.checkpoint.batch_id
        copied = count(failover.caught_up, "checkpoint")
        if failover.is_source_fenced:
            fenced = f"no driver there completes a batch any more ({copied} copied since)"
            yield f"{plain(failover.source)}: claimed; {fenced}"
        else:
            yield (
                f"{plain(failover.source)}: not claimed ({failover.reason}). A driver that still runs there is not "
                f"fenced, and batches after {batch} that it has completed are repeated here, if their input is still "
                "there"
            )
        yield f"{plain(failover.location)}: a query that starts here resumes with batch {batch + 1}"


@click.command("failover")
@path_argument("target")
@click.option("--source", help="Location of the query, if it cannot be the one that the mirror names.")
@click.option("--force", is_flag=True, help="Proceed even if the source cannot be claimed.")
@settings_option
@json_option
@pass_session
def fail_over_to_mirror(
    session: Session, target: str, source: str | None, force: bool, settings: Mapping[str, str]
) -> None:
    """Make a mirror the location of its query.

    TARGET is a mirror, made by `spark-ckpt mirror`. The command claims the source, so that no driver there completes
    another batch, copies what the mirror lacks, reads the mirror's newest checkpoint in full, and ends a process that
    still follows. Then start the query with TARGET as its checkpointLocation: it keeps its query id and batch numbers,
    by which sinks such as Delta's ignore a batch that they have.

    If the source cannot be reached, nothing here can stop a driver that still runs there. Make sure that it is gone,
    then use --force. Batches that the mirror lacks are repeated from the query's sources.

    \b
    Exit status: 0 done, 1 failed, 4 the source cannot be claimed, 5 TARGET is no such mirror.

    \b
    Examples:
      spark-ckpt failover s3://other-region/query
      spark-ckpt failover s3://other-region/query --force
    """
    mirror = storage_at(target)
    origin = storage_at(source or source_of(mirror))
    with progress_bar("reading") as progress:
        done = fail_over(mirror, origin, settings=settings, force=force, progress=progress)
    session.output.show(FailoverResult(done))
