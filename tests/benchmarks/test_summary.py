from __future__ import annotations

import pytest

from benchmarks.stores.summary import Spread, Summary
from benchmarks.stores.workloads import Target
from tests.benchmarks.records import record


def test_spread_is_the_middle_half() -> None:
    assert Spread.of([5, 1, 3, 2, 4]) == Spread(3, 2, 4, 5)
    assert Spread.of([7]) == Spread(7, 7, 7, 1)


def test_takes_all_rounds_together() -> None:
    summary = Summary([record("count-1", "ckpt", 0, batch_ms=[1, 2]), record("count-1", "ckpt", 1, batch_ms=[3, 4, 5])])
    assert summary.figure("count-1", "ckpt", "batch_ms") == Spread(3, 2, 4, 5)
    assert summary.figure("count-1", "ckpt", "requests") is None
    assert summary.figure("count-1", "hdfs", "batch_ms") is None


def test_the_best_of_sparks_own_is_that_with_the_lowest_median() -> None:
    summary = Summary(
        [
            record("count-1", "ckpt", batch_ms=[1], state_ms=[1]),
            record("count-1", "floor", batch_ms=[2], state_ms=[0]),
            record("count-1", "hdfs", batch_ms=[10], state_ms=[7]),
            record("count-1", "rocksdb", batch_ms=[20, 3, 21], state_ms=[5]),
        ]
    )
    assert summary.best_built_in("count-1", "batch_ms") == "hdfs"
    assert summary.best_built_in("count-1", "state_ms") == "rocksdb"
    assert summary.best_built_in("count-1", "requests") is None
    assert summary.best_built_in("join", "batch_ms") is None


def in_two_rounds() -> Summary:
    return Summary(
        [
            record("count-1", "ckpt", 0, batch_ms=[4, 6]),
            record("count-1", "hdfs", 0, batch_ms=[10]),
            record("count-1", "ckpt", 1, batch_ms=[9]),
            record("count-1", "hdfs", 1, batch_ms=[10]),
            record("count-1", "ckpt", 2, batch_ms=[1000]),
            record("count-1", "hdfs", 3, batch_ms=[10]),
        ]
    )


def test_ratio_of_medians_and_of_rounds_that_both_have() -> None:
    found = in_two_rounds().ratio("batch_ms", ("count-1", "ckpt"), ("count-1", "hdfs"))
    assert found == Spread(0.75, 0.5, 0.9, 2)


def test_there_is_no_ratio_to_nothing() -> None:
    summary = Summary([record("count-1", "ckpt", removals_ms=[4]), record("count-1", "hdfs", removals_ms=[0])])
    assert summary.ratio("removals_ms", ("count-1", "ckpt"), ("count-1", "hdfs")) is None
    assert summary.ratio("removals_ms", ("count-1", "ckpt"), ("join", "hdfs")) is None


@pytest.mark.parametrize(("limit", "met"), [(0.76, True), (0.75, True), (0.74, False)])
def test_a_target_is_met_up_to_its_limit(limit: float, met: bool) -> None:
    verdict = in_two_rounds().verdict(Target("count-1", "batch_ms", limit))
    assert verdict is not None
    assert verdict.met is met
    assert verdict.rival == "HDFSBacked"


def test_says_with_which_figure_a_target_is_met() -> None:
    summary = in_two_rounds()
    assert summary.allowed(Target("count-1", "batch_ms", 0.5)) == 5
    assert summary.allowed(Target("keys-8m", "batch_ms", 2, against="count-1")) == 15
    assert summary.allowed(Target("coordinator", "coordinator_ms", 40, against=None)) == 40
    assert summary.allowed(Target("join", "batch_ms", 0.5)) is None


def test_a_target_against_ourselves() -> None:
    summary = Summary([record("count-1", "ckpt", batch_ms=[10]), record("keys-8m", "ckpt", batch_ms=[12])])
    verdict = summary.verdict(Target("keys-8m", "batch_ms", 1.15, against="count-1"))
    assert verdict is not None
    assert (verdict.measured.median, verdict.met, verdict.rival) == (1.2, False, "ours in count-1")


def test_a_target_against_nothing_is_a_figure() -> None:
    summary = Summary([record("coordinator", "ckpt", coordinator_ms=[30, 35, 50])])
    verdict = summary.verdict(Target("coordinator", "coordinator_ms", 40, against=None))
    assert verdict is not None
    assert (verdict.measured, verdict.met, verdict.rival) == (Spread(35, 32.5, 42.5, 3), True, None)


@pytest.mark.parametrize(
    "target",
    [
        Target("count-1", "batch_ms", 1),
        Target("join", "batch_ms", 1),
        Target("keys-8m", "batch_ms", 1, against="count-1"),
        Target("coordinator", "coordinator_ms", 1, against=None),
    ],
)
def test_nothing_is_said_of_a_target_without_figures(target: Target) -> None:
    assert Summary([record("count-1", "ckpt", batch_ms=[1])]).verdict(target) is None


def test_knows_what_there_is() -> None:
    summary = Summary(
        [
            record("join", "hdfs", batch_ms=[1]),
            record("join", "ckpt", batch_ms=[1], requests=[1]),
            record("count-1", "ckpt", state_ms=[1]),
        ]
    )
    assert summary.workloads() == ["join", "count-1"]
    assert summary.providers("join") == ["ckpt", "hdfs"]
    assert summary.measures("join") == ["batch_ms", "requests"]


def test_names_workloads_whose_providers_disagree() -> None:
    summary = Summary(
        [
            record("count-1", "ckpt", rows=5),
            record("count-1", "hdfs", rows=5),
            record("count-1", "floor", rows=1),  # loses its state when a query restarts
            record("join", "ckpt", 0, rows=5),
            record("join", "ckpt", 1, rows=6),
            record("join", "hdfs", rows=6),
        ]
    )
    assert summary.disagreements() == {"join": {"ckpt": [5, 6], "hdfs": [6]}}
