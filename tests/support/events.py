"""Random but reproducible events in event-time order, one list per batch."""

from __future__ import annotations

import random

from tests.support.feeds import FAR_AHEAD, at

BATCH_SECONDS = 20
"""Event time covered by one batch of events, in seconds."""

JITTER_SECONDS = 5
"""Farthest reach of an event back into the previous batch's time, in seconds; watermark delays must be larger."""

END = "end"
"""Key of the row that pushes the watermark past all others; excluded from answers."""

SCHEMA = "ts timestamp, key string, value long"

Event = tuple[object, ...]


def events(rng: random.Random, batches: int = 7, per_batch: int = 40, keys: int = 12) -> list[list[Event]]:
    """Batches of (ts, key, value); no event is later than JITTER_SECONDS."""
    return [
        [(at(moment(rng, batch)), f"k{rng.randrange(keys)}", rng.randrange(-1000, 1000)) for _ in range(per_batch)]
        for batch in range(batches)
    ]


def moment(rng: random.Random, batch: int) -> float:
    """A random time within a batch, in seconds with three decimals."""
    first = batch * BATCH_SECONDS - (JITTER_SECONDS if batch else 0)
    return rng.randrange(first * 1000, (batch + 1) * BATCH_SECONDS * 1000) / 1000


def end() -> list[Event]:
    """A last batch that expires everything before it."""
    return [(at(FAR_AHEAD), END, 0)]


def without_end(rows: list[Event]) -> list[Event]:
    """The rows except those produced by the row that only moves the watermark.

    A filter in the query does not work: Spark pushes it below the watermark, which then never moves.
    """
    return [row for row in rows if END not in row]
