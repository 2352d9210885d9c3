"""The result of `spark-ckpt rescale`, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from spark_ckpt.cli.describe import JsonObject
from spark_ckpt.cli.summary import count, human_size, plain
from spark_ckpt.operations.rescaling import Rescaling


def describe_rescaling(rescaling: Rescaling) -> JsonObject:
    """`{"location", "before", "after", "batch_id", "from_checkpoint", "checkpoint_id", "new_bytes", "stores"}`.

    A store has "operator_id", "name", "store", "before", "after" and "segments".
    """
    return asdict(rescaling)


def rescaling_lines(rescaling: Rescaling) -> Iterator[str]:
    """What has become of the whole, and a line for each store."""
    did = "would be rescaled" if rescaling.checkpoint_id is None else "was rescaled"
    yield f"{plain(rescaling.location)} {did} from {rescaling.before:,} to {count(rescaling.after, 'partition')}"
    for store in rescaling.stores:
        parts = f"{store.before:,} -> {store.after:,}" if store.after != store.before else "runs as one task"
        yield f"  {plain(store.name)} {store.operator_id}/{plain(store.store)}: {parts}"
    if rescaling.checkpoint_id is not None:
        yield (
            f"checkpoint {rescaling.checkpoint_id} of batch {rescaling.batch_id}, made of checkpoint "
            f"{rescaling.from_checkpoint}; {human_size(rescaling.new_bytes)} written. Start the query as it is"
        )
