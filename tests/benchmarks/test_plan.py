from __future__ import annotations

from collections import Counter
from dataclasses import replace

from benchmarks.stores.plan import Run, plan
from benchmarks.stores.workloads import WORKLOADS

COUNT, JOIN, COORDINATOR = WORKLOADS["count-1"], WORKLOADS["join"], WORKLOADS["coordinator"]


def test_every_provider_has_its_turn_in_every_round() -> None:
    runs = list(plan([COUNT, JOIN], ["ckpt", "hdfs", "rocksdb"], 2))
    assert Counter(runs) == {
        Run(workload, provider, number): 1
        for workload in (COUNT, JOIN)
        for provider in ("ckpt", "hdfs", "rocksdb")
        for number in (0, 1)
    }


def test_each_round_begins_with_another_provider() -> None:
    order = [run.provider for run in plan([COUNT], ["ckpt", "hdfs", "rocksdb"], 4)]
    assert order == [
        *("ckpt", "hdfs", "rocksdb"),
        *("hdfs", "rocksdb", "ckpt"),
        *("rocksdb", "ckpt", "hdfs"),
        *("ckpt", "hdfs", "rocksdb"),
    ]


def test_a_round_ends_before_the_next_begins() -> None:
    rounds = [run.round for run in plan([COUNT], ["ckpt", "floor"], 3)]
    assert rounds == sorted(rounds)


def test_a_workload_may_be_for_some_providers_only() -> None:
    assert [run.provider for run in plan([COORDINATOR], ["hdfs", "ckpt"], 2)] == ["ckpt", "ckpt"]
    assert list(plan([COORDINATOR], ["hdfs"], 2)) == []


def test_names_of_runs_differ() -> None:
    runs = list(plan(WORKLOADS.values(), ["ckpt", "hdfs", "rocksdb", "rocksdb-changelog", "floor"], 3))
    assert len({run.name for run in runs}) == len(runs) == len(set(runs))


def test_another_scale_is_another_run() -> None:
    assert Run(COUNT, "ckpt", 0) != Run(replace(COUNT, keys=10_000), "ckpt", 0)
