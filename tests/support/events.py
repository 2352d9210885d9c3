"""Random but reproducible events in event-time order, batch by batch."""

from __future__ import annotations

import random

from tests.support.feeds import FAR_AHEAD, at

BATCH_SECONDS = 20
"""Event time that one batch of events covers."""

JITTER_SECONDS = 5
"""How far events reach back into the time of the batch before; watermark delays must be larger."""

END = "end"
"""Key of the row that pushes the watermark beyond all others; answers leave it out."""

SCHEMA = "ts timestamp, key string, value long"

Event = tuple[object, ...]


def events(rng: random.Random, batches: int = 7, per_batch: int = 40, keys: int = 12) -> list[list[Event]]:
    """Batches of (ts, key, value); none is ever later than JITTER_SECONDS."""
    return [
        [(at(moment(rng, batch)), f"k{rng.randrange(keys)}", rng.randrange(-1000, 1000)) for _ in range(per_batch)]
        for batch in range(batches)
    ]


def moment(rng: random.Random, batch: int) -> float:
    """A random time in a batch, in seconds with three decimals."""
    first = batch * BATCH_SECONDS - (JITTER_SECONDS if batch else 0)
    return rng.randrange(first * 1000, (batch + 1) * BATCH_SECONDS * 1000) / 1000


def end() -> list[Event]:
    """A last batch that makes everything before it expire."""
    return [(at(FAR_AHEAD), END, 0)]


def without_end(rows: list[Event]) -> list[Event]:
    """The rows without those of the row that only moves the watermark.

    A filter in the query will not do: Spark pushes it below the watermark, which then never moves.
    """
    return [row for row in rows if END not in row]
