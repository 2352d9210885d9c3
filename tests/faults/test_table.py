"""Part of the fault table; `make faults` runs all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.points import POINTS, RESTARTED, RETRIED, WENT_ON, Cell, Kind, cells, point_named
from tests.faults.table import FaultTable, Result, markdown
from tests.support.provider import provider_under_test

SOME = (
    Cell(point_named("claim: create"), Kind.LATE),
    Cell(point_named("first ack: on its way"), Kind.LATE),
    Cell(point_named("between two operators"), Kind.KILL),
    Cell(point_named("executor: write a state file"), Kind.ERROR),
    Cell(point_named("merged segments: write"), Kind.LATE),
    Cell(point_named("record: outcome unknown, read it back"), Kind.ERROR),
    Cell(point_named("last ack: its answer"), Kind.LATE),
    Cell(point_named("subsuming: delete files"), Kind.KILL),
    Cell(point_named("checkpoint complete, commit of Spark to come"), Kind.ERROR),
    Cell(point_named("run of one batch: record"), Kind.KILL),
    Cell(point_named("beside another query: a poisonous ack"), Kind.POISON),
    Cell(point_named("record: create"), Kind.KILL_DRIVER),
)
ON_DISK = (
    Cell(point_named("local disk: evict a page"), Kind.ERROR),
    Cell(point_named("local disk: move the rows of a page"), Kind.ERROR),
    Cell(point_named("local disk: evict a page"), Kind.KILL_DRIVER),
)
"""The disk is full, or the driver is killed, in the middle of a write."""

MORE_ON_DISK = (
    Cell(point_named("local disk: read a row"), Kind.TRUNCATED),
    Cell(point_named("local disk: read a row"), Kind.DELETED),
    Cell(point_named("base: sort it in a file"), Kind.ERROR),
    Cell(point_named("merged deltas: write their file"), Kind.ERROR),
    Cell(point_named("local disk: move the rows of a page"), Kind.KILL_DRIVER),
    Cell(point_named("base: sort it in a file"), Kind.KILL_DRIVER),
    Cell(point_named("merged deltas: write their file"), Kind.KILL_DRIVER),
)

HANGS = (Cell(point_named("first ack: on its way"), Kind.HANG), Cell(point_named("last ack: its answer"), Kind.HANG))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "some",
    [
        pytest.param(SOME[::4] + ON_DISK[:1], id="some"),
        pytest.param(SOME[1::4] + SOME[2::4] + SOME[3::4] + ON_DISK[1:], id="others", marks=pytest.mark.long),
        pytest.param(MORE_ON_DISK, id="disk", marks=pytest.mark.long),
        pytest.param(HANGS, id="hangs", marks=pytest.mark.long),
    ],
)
def test_some_faults(tmp_path: Path, seed: int, some: tuple[Cell, ...]) -> None:
    """Each cell has the outcome that the table states, the batch answer, and checkpoints in order."""
    if not provider_under_test().is_ours:
        pytest.skip("Spark's own providers have no coordinator")
    results = list(FaultTable(tmp_path, some, seed).results())
    print(markdown(results))
    assert [result.cell for result in results] == list(some)
    wrong = [f"{result.cell.name}: {result.outcome}, {result.wrong}" for result in results if not result.is_good]
    assert not wrong, "\n".join(wrong)


def test_the_table_covers_every_kind_at_many_points() -> None:
    """Names are unique, and every kind of fault strikes at many points."""
    assert len({point.name for point in POINTS}) == len(POINTS) >= 14
    for kind in (Kind.ERROR, Kind.LATE, Kind.KILL, Kind.KILL_DRIVER):
        assert sum(cell.kind is kind for cell in cells()) >= 14, kind


def test_a_cell_is_good_only_with_its_outcome_and_nothing_wrong() -> None:
    cell = Cell(point_named("record: create"), Kind.ERROR)
    other = next(outcome for outcome in (RETRIED, WENT_ON) if outcome != cell.expected)
    good = Result(cell, cell.expected, 0, 8, None)
    unexpected = Result(cell, other, 0, 8, None)
    wrong = Result(cell, cell.expected, 0, 8, "a row is missing")
    assert [result.is_good for result in (good, unexpected, wrong)] == [True, False, False]
    assert f"| {cell.expected} |" in markdown([good])
    assert f"**{other}**, not: {cell.expected}" in markdown([unexpected])
    assert "a row is missing" in markdown([wrong])


def test_a_cell_may_have_two_outcomes() -> None:
    cell = Cell(point_named("local disk: move the rows of a page"), Kind.ERROR)
    assert [cell.expects(outcome) for outcome in (WENT_ON, RETRIED, RESTARTED)] == [True, True, False]
