"""Checkpoint location with a few rows of state of many types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_ckpt.format.segments import Section
from tests.cli.sources import AFTER, BEFORE
from tests.support.state_location import StateLocation, row, schema

KEY = schema(user="string", day="date")
VALUE = schema(
    n="long",
    price="decimal(9,2)",
    at="timestamp",
    share="double",
    code="binary",
    parts={"type": "array", "elementType": "date"},
    table={"type": "map", "keyType": "string", "valueType": "long"},
    pause="interval day to second",
)

A = row(KEY, "a", 0)
B = row(KEY, "b\x1b[0m", 19_000)
C = row(KEY, None, None)
FIRST = row(VALUE, 1, "1.50", 0, float("nan"), b"\xff", [0, None], [("x", 1)], 5)
SECOND = row(VALUE, 2, "1.50", 2**62, float("inf"), b"\xff", [], [("x", None)], 2**62)


def state_location(directory: Path, *, with_sources: bool = False, **arguments: Any) -> StateLocation:
    """Location with checkpoints 2 and 3: the latter adds a row, changes one and removes one; so it does with positions
    of sources, if the query has any."""
    family = "count" if "variables" in arguments else ""
    location = StateLocation(directory, {family or "default": (KEY, VALUE)}, **arguments)
    location.sources = BEFORE if with_sources else ()
    location.commit(Section(((A, FIRST), (B, FIRST)), family), rows=1)
    location.sources = AFTER if with_sources else ()
    location.commit(Section(((A, SECOND), (B, None), (C, FIRST)), family), rows=1)
    return location
