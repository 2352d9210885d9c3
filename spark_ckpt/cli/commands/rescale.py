"""`spark-ckpt rescale`."""

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
from spark_ckpt.cli.watch import interval
from spark_ckpt.figures import count, human_size
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.rescale import Rescaling, rescale
from spark_ckpt.operations.running_rescale import WAIT_SECONDS, RunningRescaling, rescale_running


@dataclass(frozen=True, slots=True)
class RescaleResult(Result):
    """A query with another number of partitions.

    Args:
        rescaling: the numbers before and after, and the new checkpoint except after a dry run.
    """

    rescaling: Rescaling

    def to_json(self) -> JsonObject:
        """`{"location", "before", "after", "batch_id", "from_checkpoint", "checkpoint_id", "new_bytes", "reads",
        "read_once", "stores"}`.

        "reads" says how often each block of state is read at the next start, and "read_once" has the nearest numbers of
        partitions at which it is read once, if it is not.
        A store has "operator_id", "name", "store", "before", "after" and "segments".
        """
        return described("rescale", self.rescaling)

    def render(self) -> Iterator[str]:
        """A summary, a line for each store, and the new checkpoint."""
        rescaling = self.rescaling
        did = "would be rescaled" if rescaling.checkpoint_id is None else "rescaled"
        yield f"{plain(rescaling.location)} {did} from {rescaling.before:,} to {count(rescaling.after, 'partition')}"
        for store in rescaling.stores:
            parts = f"{store.before:,} -> {store.after:,}" if store.after != store.before else "runs as one task"
            yield f"  {plain(store.name)} {store.operator_id}/{plain(store.store)}: {parts}"
        if rescaling.reads > 1:
            once = " or ".join(f"{number:,}" for number in rescaling.read_once)
            yield (
                f"partitions share key groups: the next start reads each block of state {rescaling.reads:,} times; "
                f"with {once} partitions, once"
            )
        if rescaling.checkpoint_id is not None:
            yield (
                f"new checkpoint {rescaling.checkpoint_id}, batch {rescaling.batch_id}, from checkpoint "
                f"{rescaling.from_checkpoint}: {human_size(rescaling.new_bytes)} written. Restart the query unchanged"
            )


@dataclass(frozen=True, slots=True)
class RunningRescaleResult(Result):
    """A running query with another number of partitions.

    Args:
        rescaling: the numbers before and after, and the first batch with the new one.
    """

    rescaling: RunningRescaling

    def to_json(self) -> JsonObject:
        """`{"location", "before", "after", "batch_id", "waited_ms"}`."""
        return described("rescale_running", self.rescaling)

    def render(self) -> Iterator[str]:
        """One line: the numbers and the batch."""
        rescaling, place = self.rescaling, plain(self.rescaling.location)
        after = count(rescaling.after, "partition")
        if rescaling.batch_id is None:
            yield f"{place} runs with {after} already"
        else:
            yield f"{place} runs with {after} from batch {rescaling.batch_id} on; {rescaling.before:,} before"


def _wait(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    return None if text is None else interval(context, parameter, text)


@click.command("rescale")
@path_argument("location")
@click.option("--partitions", type=click.IntRange(min=1), required=True, help="New number of partitions.")
@click.option("--running", is_flag=True, help="Ask the driver of the running query for it; nothing stops.")
@click.option(
    "--wait",
    "wait_seconds",
    metavar="TIME",
    callback=_wait,
    show_default="5m",
    help="Longest wait of --running for the driver.",
)
@force_option
@settings_option
@dry_run_option
@json_option
@pass_session
def rescale_query(
    session: Session,
    location: str,
    partitions: int,
    running: bool,
    wait_seconds: float | None,
    force: bool,
    settings: dict[str, str],
    dry_run: bool,
) -> None:
    """Change the number of partitions of a query.

    LOCATION is the checkpointLocation of the query, as a path or URL. Stop the query between two batches first, and
    start it again as before; or leave it running, with --running. No state file is read or changed, so the duration
    does not depend on the size of the state. A new checkpoint assigns the existing files to the new partitions, and
    Spark's logs get one batch without input. The query takes the new number from its logs and ignores
    spark.sql.shuffle.partitions.

    Any number up to the number of key groups (maxParallelism) works, unless very many partitions would share state:
    then the command names the nearest numbers that do. A divisor of the key groups makes the first start fastest. With
    other numbers, partitions read parts of each other's files until they have written their own; --dry-run says how
    often each block of state will be read.

    The last claim in the log names the driver. If its process is running on this host, the command refuses, unless you
    add --force. A driver on another host is fenced off: if the query is running there after all, either of the two
    fails and nothing is lost.

    If the command is interrupted, Spark refuses to start the query: run the same command again.

    With --running, nothing stops. The driver looks for a request after its batches, every half second or, on an object
    store, every minute. The next batch has the new number, and the command ends when that batch does. A query that
    begins no batch sees no request. After --wait, or Ctrl-C, the command withdraws it.

    \b
    Exit status: 0 done, 1 failed or not answered, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt rescale /checkpoints/orders --partitions 400 --dry-run
      spark-ckpt rescale /checkpoints/orders --partitions 400 --running
      spark-ckpt rescale s3://bucket/checkpoints/orders --partitions 100 --json
    """
    if running and (force or dry_run or settings):
        raise click.UsageError("--running excludes --force, --dry-run and --conf: the driver of the query decides")
    if wait_seconds is not None and not running:
        raise click.UsageError("--wait requires --running")
    storage = CheckpointLocation.open(location).of_query()
    if running:
        timeout_s = WAIT_SECONDS if wait_seconds is None else wait_seconds
        with progress_bar("waiting for the driver") as progress:
            running_rescaling = rescale_running(storage, partitions, timeout_s=timeout_s, progress=progress)
        session.output.show(RunningRescaleResult(running_rescaling))
        return
    with progress_bar("assigning") as progress:
        rescaling = rescale(storage, partitions, settings=settings, force=force, dry_run=dry_run, progress=progress)
    session.output.show(RescaleResult(rescaling))
