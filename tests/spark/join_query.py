"""A stream-stream join and its input."""

from __future__ import annotations

import random

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tests.support.events import moment
from tests.support.feeds import FAR_AHEAD, at
from tests.support.runner import Batches

LEFT = "left_ts timestamp, left_id long, a string"
RIGHT = "right_ts timestamp, right_id long, b string"


def side(rng: random.Random, name: str, batches: int = 5) -> Batches:
    """Rows of one side: some ids repeated, some on this side only; the last batch makes all of them expire."""
    rows = [
        [(at(moment(rng, batch)), rng.randrange(25), f"{name}{batch}-{number}") for number in range(12)]
        for batch in range(batches)
    ]
    return [*rows, [(at(FAR_AHEAD), -1 if name == "left" else -2, "end")]]


def joined(left: DataFrame, right: DataFrame, how: str, delay: str = "10 seconds") -> DataFrame:
    """The join, without the rows of the last batch. Bounds on both event times let Spark expire rows.

    Args:
        left: rows of one side.
        right: rows of the other.
        how: kind of the join.
        delay: how late rows may be.
    """
    condition = sf.expr(
        "left_id = right_id AND right_ts BETWEEN left_ts - INTERVAL 10 SECONDS AND left_ts + INTERVAL 25 SECONDS"
    )
    both = left.withWatermark("left_ts", delay).join(right.withWatermark("right_ts", delay), condition, how)
    ids = ["left_id"] if how == "left_semi" else ["left_id", "right_id"]
    return both.where(sf.coalesce(*ids) >= 0)
