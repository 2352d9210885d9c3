"""The checkpoint location of the demo's totals per aircraft, made up: what the pages show is of the real one."""

from __future__ import annotations

from pathlib import Path

from spark_ckpt.segments import Section
from tests.state.locations import Schema, StateLocation, row, schema

AIRCRAFT = 12
COMMITS = 23
"""Checkpoints 2 to 24; the newest one of a run of the demo has id 24."""

_BASE_AT = COMMITS - 1

KEY = schema(tailnum="string")


def _value() -> Schema:
    value = schema(count="long", flown="long", sum="long", minutes="long", max="long", seen="timestamp")
    for field, name in zip(value["fields"], ("count", "count", "sum", "sum", "max", "max"), strict=True):
        field["name"] = name  # Spark names the buffers of an aggregate so
    return value


VALUE = _value()


def make_aircraft(directory: Path) -> None:
    """A location in which each checkpoint changes all aircraft, and adds one until there are enough."""
    location = StateLocation(directory, {"default": (KEY, VALUE)})
    entries: tuple[tuple[bytes, bytes], ...] = ()
    for commit in range(1, COMMITS + 1):
        before, entries = entries, _totals(commit)
        base = (Section(before),) if commit == _BASE_AT else ()
        location.commit(Section(entries), base=base, rows=len(entries) // 2, inline=False)


def _totals(commit: int) -> tuple[tuple[bytes, bytes], ...]:
    known = range(min(AIRCRAFT, AIRCRAFT - COMMITS + commit)) if commit > COMMITS - AIRCRAFT else range(1)
    return tuple(
        (row(KEY, f"N{100 + 41 * number}"), row(VALUE, 400 + commit, 300 + commit, 9 * commit, 7 * commit, 30, 10**15))
        for number in known
    )
