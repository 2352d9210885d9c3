from __future__ import annotations

import json
from io import StringIO

import pytest
from rich.console import Console

from benchmarks.flink.running import Round
from benchmarks.flink.tables import OURS, Figures, of_flink, of_ours, table, to_json
from benchmarks.nexmark.plan import Record, Run

ROUNDS = [
    Round(2.0, 4.0, (10, 30), (1_000_000, 3_000_000), (5_000_000, 7_000_000)),
    Round(4.0, 6.0, (20,), (2_000_000,), (9_000_000,)),
]


def test_figures_of_flink_are_medians_over_rounds_and_checkpoints() -> None:
    found = of_flink(ROUNDS, 4_000_000)
    assert (found.events_s, found.low, found.high) == (1_500_000, 1_000_000, 2_000_000)
    assert found.cpu_s == pytest.approx(1.25)
    assert (found.checkpoint_ms, found.checkpoint_mb, found.stored_mb) == (20, 2, 8)


def test_a_job_that_ended_before_its_first_checkpoint_has_none() -> None:
    found = of_flink([Round(1.0, 1.0, (), (), ())], 1000)
    assert found.checkpoint_ms is None
    assert found.checkpoint_mb is None
    assert found.stored_mb is None


def test_figures_of_ours_come_from_the_records_of_nexmark() -> None:
    records = [
        Record(Run("q3", "ckpt", n), _samples(100.0 * (n + 1)), rows=1, answer=[], load=0.0, machine={})
        for n in range(3)
    ]
    found = of_ours(records)
    assert found == Figures(200, 100, 300, 1.5, 40, None, 12)


def _samples(speed: float) -> dict[str, list[float]]:
    return {"events_s": [speed], "cpu_s": [1.5], "batch_ms": [30, 40, 50], "stored_mb": [12.0]}


def test_the_table_and_the_json_have_all_systems() -> None:
    found = {"q3": {OURS: Figures(200, 100, 300, 1.5, 40, None, 12), "flink-hashmap": of_flink(ROUNDS, 4_000_000)}}
    file = StringIO()
    Console(width=160, file=file).print(table(found))
    text = file.getvalue()
    assert "1,000,000 to 2,000,000" in text
    assert [line for line in text.splitlines() if OURS in line and " - " in line]
    assert json.loads(json.dumps(to_json(found, {"cores": 2})))["figures"][0]["system"] == OURS
