"""A policy doubles and halves as the load asks for it, and no more often."""

from __future__ import annotations

from typing import Any

import pytest

from spark_ckpt.elasticity import BusyPolicy, Observation
from spark_ckpt.errors import SettingError
from tests.elasticity.load import Load

BURST = [100.0, 180.0, 60.0, 120.0, 90.0]
"""Rates that differ, from which the cost of a row can be told."""


def busy(**others: Any) -> BusyPolicy:
    return BusyPolicy(2, 64, 1000, **others)


def test_it_doubles_with_the_load_and_halves_after_it() -> None:
    load = Load(busy(), partitions=2, fixed_ms=50)
    rates = [*[250.0] * 20, *[500.0] * 20, *[2000.0] * 30, *[500.0] * 30, *[120.0] * 40]
    assert load.run(rates)[:3] == [4, 8, 16]
    assert load.changes[-1] <= 4
    assert load.changes == [4, 8, 16, 8, 4, 2]


def test_a_decision_says_why() -> None:
    load = Load(busy(), partitions=2)
    load.run([900.0] * 8)
    reason = load.decided[5].reason
    assert reason.startswith("3 batches in a row took ")
    assert reason.endswith("% or more of their interval of 1000 ms beyond their fixed cost, above the limit of 80 %")


@pytest.mark.parametrize("rate", [300.0, 350.0, 400.0, 450.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0])
@pytest.mark.parametrize("partitions", [2, 4, 16, 64])
def test_it_does_not_flap(rate: float, partitions: int) -> None:
    """Under a constant load, it finds one number in one direction."""
    load = Load(busy(partitions_per_core=64), partitions=partitions, cores=64, fixed_ms=50)
    changes = [partitions, *load.run([rate] * 100)]
    assert changes in (sorted(changes), sorted(changes, reverse=True))
    assert max(load.decided, default=0) < 60


@pytest.mark.parametrize("cooldown", [1, 4, 10])
def test_batches_after_a_start_and_a_change_do_not_count(cooldown: int) -> None:
    load = Load(busy(cooldown_batches=cooldown), partitions=2)
    load.run([3000.0] * (2 * cooldown + 6))
    assert sorted(load.decided) == [cooldown + 2, 2 * cooldown + 5]


def test_a_slow_first_batch_does_not_count() -> None:
    load = Load(busy(agree=1, cooldown_batches=1), first_ms=100_000)
    load.waiting = 0
    policy = load.policy
    slow = Observation("run-1", 0, partitions=4, cores=8, rows=100, batch_ms=100_000)
    usual = Observation("run-1", 1, partitions=4, cores=8, rows=100, batch_ms=500)
    assert [policy.decide(slow), policy.decide(usual)] == [None, None]
    again = Observation("run-2", 2, partitions=4, cores=8, rows=100, batch_ms=100_000)
    assert policy.decide(again) is None
    assert policy.decide(again) is not None


def test_a_query_that_recovers_does_not_grow() -> None:
    load = Load(busy(cooldown_batches=1), fixed_ms=0, first_ms=0)
    load.run([700.0] * 3)
    load.waiting = 20_000
    assert load.run([700.0] * 20) == []


def test_batches_must_agree_in_a_row() -> None:
    load = Load(busy(), fixed_ms=0, first_ms=0)
    assert load.run([1050.0, 1050.0, 500.0] * 20) == []


@pytest.mark.parametrize(
    ("limits", "most"), [({}, 64), ({"partitions_per_core": 2}, 32), ({"partitions_per_core": 1.5}, 24)]
)
def test_it_grows_to_its_bounds(limits: dict[str, float], most: int) -> None:
    load = Load(busy(**limits), partitions=5, row_ms=100)
    assert load.run([5000.0] * 60)[-1] == most


def test_it_shrinks_to_its_bounds() -> None:
    load = Load(BusyPolicy(3, 64, 1000), partitions=9, fixed_ms=20)
    assert load.run([10.0] * 60) == [5, 3]


def test_it_moves_into_its_bounds() -> None:
    assert Load(busy(), partitions=200).run([300.0] * 5) == [64]
    assert Load(busy(), partitions=1).run([150.0] * 5) == [2]


def test_a_fixed_cost_does_not_keep_an_idle_query_large() -> None:
    """0.3 s of each batch remain with any number of partitions."""
    load = Load(busy(), partitions=16, fixed_ms=300)
    load.run(BURST * 12)
    assert load.changes == [8, 4, 2]


def test_a_known_fixed_cost_needs_no_different_batches() -> None:
    assert Load(busy(fixed_ms=300), partitions=16, fixed_ms=300).run([100.0] * 30) == [8, 4, 2]
    assert Load(busy(), partitions=16, fixed_ms=500).run([100.0] * 30) == []


def test_batches_without_rows_tell_the_fixed_cost_only() -> None:
    load = Load(busy(), partitions=16, fixed_ms=300)
    assert load.run([0.0] * 30) == []
    assert load.run([60.0, 0.0] * 6) == [8]


def test_a_query_that_its_fixed_cost_fills_does_not_grow() -> None:
    load = Load(busy(fixed_ms=1200), partitions=16, fixed_ms=1200)
    assert load.run([40.0] * 30) == [8, 4]


def backlogs(*waiting: float | None, batch_ms: float = 900, **others: Any) -> list[int]:
    """Decisions of a policy without a trigger interval, by growing and shrinking backlogs."""
    policy = BusyPolicy(2, 64, cooldown_batches=1, **others)
    found = []
    for batch_id, backlog in enumerate(waiting):
        seen = Observation(
            "run-1",
            batch_id,
            partitions=8,
            cores=16,
            rows=100,
            rows_per_s=100,
            processed_per_s=100_000 / batch_ms,
            batch_ms=batch_ms,
            backlog_rows=backlog,
        )
        if (decision := policy.decide(seen)) is not None:
            found.append(decision.partitions)
    return found


def test_a_growing_backlog_doubles() -> None:
    assert backlogs(0, 10, 20, 30, 40) == [16]
    assert backlogs(0, 10, 20, 20, 40, 30, 50, 20) == []
    assert backlogs(40, 30, 20, 10, 0) == []
    assert backlogs(0, 10, 20, None, 40, 50) == []


def test_without_a_trigger_a_busy_query_without_a_backlog_stays() -> None:
    assert backlogs(*[None] * 20, batch_ms=1000) == []


def test_without_a_trigger_an_idle_query_halves() -> None:
    assert backlogs(*[None] * 4, batch_ms=200) == [4]
    assert backlogs(*[0] * 4, batch_ms=200) == [4]


def test_an_idle_query_whose_source_holds_rows_back_stays() -> None:
    assert backlogs(*range(0, 200, 10), batch_ms=200) == []


def test_an_observation_without_figures_is_no_reason() -> None:
    policy = busy(agree=1)
    assert [policy.decide(Observation("run-1", batch_id)) for batch_id in range(9)] == [None] * 9
    assert [policy.decide(Observation("run-1", 9, partitions=4, rows=7)) for _ in range(9)] == [None] * 9


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"min_partitions": 0}, "min_partitions"),
        ({"min_partitions": 65}, "max_partitions"),
        ({"max_partitions": 2.5}, "max_partitions"),
        ({"trigger_ms": 0}, "trigger_ms"),
        ({"high": 1.1}, "high"),
        ({"low": 0.4}, "low"),
        ({"low": 0}, "low"),
        ({"agree": 0}, "agree"),
        ({"agree": True}, "agree"),
        ({"cooldown_batches": 0}, "cooldown_batches"),
        ({"partitions_per_core": 0}, "partitions_per_core"),
        ({"fixed_ms": -1}, "fixed_ms"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], key: str) -> None:
    with pytest.raises(SettingError, match=f"^{key}: ") as caught:
        BusyPolicy(**{"min_partitions": 2, "max_partitions": 64, **arguments})
    assert caught.value.key == key
