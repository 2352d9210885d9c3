from __future__ import annotations

import pytest
from rich.console import Console

from benchmarks.nexmark import tables
from benchmarks.nexmark.figures import Figures
from benchmarks.nexmark.plan import BATCH, Record, Run


def record(
    query: str,
    provider: str,
    events_s: float,
    *,
    turn: int = 0,
    answer: int = 1,
    load: float = 0.1,
    batch_ms: tuple[float, ...] = (100.0,),
) -> Record:
    samples = {"events_s": [events_s], "cpu_s": [1000 / events_s], "batch_ms": list(batch_ms)}
    return Record(Run(query, provider, turn), samples, 10, [[answer, 0, 0]], load, {"cores": 2, "busy": 0})


RECORDS = [
    record("q3", "ckpt", 200),
    record("q3", "hdfs", 90),
    record("q3", "rocksdb", 100),
    record("q17", "ckpt", 800),
    record("q17", "rocksdb", 100),
    record("q14", "ckpt", 100),
    record("q14", "rocksdb", 100),
]


def test_the_best_built_in_has_most_events_a_second_and_least_cpu() -> None:
    figures = Figures(RECORDS)
    assert figures.best_built_in("q3", "events_s") == "rocksdb"
    assert figures.best_built_in("q3", "cpu_s") == "rocksdb"
    found = figures.ratio("q3", "events_s")
    assert found is not None
    assert found.median == 2
    assert figures.ratio("q3", "restart_ms") is None


def test_the_mean_is_geometric_and_without_the_control() -> None:
    assert Figures(RECORDS).mean_ratio("events_s") == pytest.approx(4)
    assert Figures([]).mean_ratio("events_s") is None


def test_ratios_of_the_rounds_are_the_spread() -> None:
    rounds = [
        *(record("q3", "ckpt", figure, turn=number) for number, figure in enumerate((200, 300, 400))),
        *(record("q3", "rocksdb", 100, turn=number) for number in range(3)),
    ]
    found = Figures(rounds).ratio("q3", "events_s")
    assert found is not None
    assert (found.low, found.median, found.high, found.count) == (2, 3, 4, 3)


def test_the_99th_percentile_is_over_all_batches() -> None:
    figures = Figures([record("q3", "ckpt", 1, batch_ms=tuple(range(1, 101)))])
    found = figures.spread("q3", "ckpt", "batch_p99_ms")
    assert found is not None
    assert found.median == 100


def test_another_answer_is_told_of_providers_rounds_and_the_batch_query() -> None:
    assert list(Figures(RECORDS).differing_answers()) == []
    for other in (
        record("q3", "hdfs", 90, turn=1, answer=2),
        record("q3", "ckpt", 90, turn=1, answer=2),
        Record(Run("q3", BATCH, 0), {}, 0, [[2, 0, 0]], 0.1, {"cores": 2, "busy": 0}),
    ):
        (told,) = Figures([*RECORDS, other]).differing_answers()
        assert told.startswith("q3: the answers differ")


def test_answers_by_the_clock_are_not_compared() -> None:
    assert list(Figures([record("q12", "ckpt", 1), record("q12", "hdfs", 1, answer=2)]).differing_answers()) == []


def test_tables_and_json_have_each_query_and_provider() -> None:
    figures = Figures(RECORDS)
    console = Console(width=250, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(tables.ratios_table(figures), tables.figures_table(figures, "q3"))
    shown = console.export_text()
    assert "q17: statistics" in shown
    assert "HDFSBacked" in shown
    assert "4.00" in shown
    found = tables.to_json(figures, [*RECORDS, record("q3", "ckpt", 1, load=9)])
    assert found["mean_ratios"]["events_s"] == pytest.approx(4)
    assert found["warnings"] == ["other work kept up to 9 cores busy when these queries began: q3"]
    assert {one["query"] for one in found["ratios"]} == {"q3", "q14", "q17"}
    assert "q10" in found["left_out"]
