from __future__ import annotations

from pathlib import Path

from benchmarks.nexmark.job import WARM_UP
from benchmarks.nexmark.plan import BATCH, DISK, Record, Results, Run, plan
from benchmarks.nexmark.queries import QUERIES


def providers(query: str, chosen: list[str], rounds: int) -> list[tuple[int, str]]:
    return [(run.round, run.provider) for run in plan(query, chosen, rounds)]


def test_a_round_warms_up_and_each_other_one_begins_with_another_provider() -> None:
    assert providers("q17", ["ckpt", "hdfs", "rocksdb"], 2) == [
        *((WARM_UP, "ckpt"), (WARM_UP, "hdfs"), (WARM_UP, "rocksdb")),
        *((0, "ckpt"), (0, "hdfs"), (0, "rocksdb")),
        *((1, "hdfs"), (1, "rocksdb"), (1, "ckpt")),
    ]


def test_the_batch_answer_comes_first_where_rows_are_final() -> None:
    assert providers("q3", ["ckpt"], 1) == [(0, BATCH), (WARM_UP, "ckpt"), (0, "ckpt")]


def test_a_query_of_column_families_leaves_out_the_provider_without_them() -> None:
    assert {name for _, name in providers("q18", ["ckpt", "hdfs", "rocksdb"], 1)} == {"ckpt", "rocksdb"}


def test_ours_runs_before_the_one_whose_budget_follows_from_it() -> None:
    names = [name for _, name in providers("q17", ["rocksdb", DISK.name, "ckpt"], 2)]
    assert names.index("ckpt") < names.index(DISK.name)


def test_all_runs_differ() -> None:
    runs = [run for query in QUERIES for run in plan(query, ["ckpt", "hdfs", "rocksdb"], 3)]
    assert len(set(runs)) == len(runs)


def test_stored_results_come_back(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    assert results.records() == []
    record = Record(Run("q3", "ckpt", 0), {"events_s": [1.5]}, 7, [[1, 2, 3]], 0.5, {"cores": 2, "busy": 0})
    results.extend([record])
    assert Results(tmp_path / "results").records() == [record]
