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
from spark_ckpt.figures import count, human_size
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.rescale import Rescaling, rescale


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


@click.command("rescale")
@path_argument("location")
@click.option("--partitions", type=click.IntRange(min=1), required=True, help="New number of partitions.")
@force_option
@settings_option
@dry_run_option
@json_option
@pass_session
def rescale_query(
    session: Session, location: str, partitions: int, force: bool, settings: dict[str, str], dry_run: bool
) -> None:
    """Change the number of partitions of a stopped query.

    LOCATION is the checkpointLocation of the query, as a path or URL. Stop the query between two batches first, and
    start it again as before. No state file is read or changed, so the duration does not depend on the size of the
    state. A new checkpoint assigns the existing files to the new partitions, and Spark's logs get one batch without
    input. The query takes the new number from its logs and ignores spark.sql.shuffle.partitions.

    Any number up to the number of key groups (maxParallelism) works, unless very many partitions would share state:
    then the command names the nearest numbers that do. A divisor of the key groups makes the first start fastest. With
    other numbers, partitions read parts of each other's files until they have written their own; --dry-run says how
    often each block of state will be read.

    The last claim in the log names the driver. If its process is running on this host, the command refuses, unless you
    add --force. A driver on another host is fenced off: if the query is running there after all, either of the two
    fails and nothing is lost.

    If the command is interrupted, Spark refuses to start the query: run the same command again.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt rescale /checkpoints/orders --partitions 400 --dry-run
      spark-ckpt rescale s3://bucket/checkpoints/orders --partitions 100 --json
    """
    storage = CheckpointLocation.open(location).of_query()
    with progress_bar("assigning") as progress:
        rescaling = rescale(storage, partitions, settings=settings, force=force, dry_run=dry_run, progress=progress)
    session.output.show(RescaleResult(rescaling))
