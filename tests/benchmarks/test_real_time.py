from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.real_time import plots, tables
from benchmarks.real_time.latency import (
    Batch,
    LostRowError,
    Output,
    Pause,
    Sent,
    pair_counts,
    pair_unique,
    pauses,
    percentile,
    samples_of,
)
from benchmarks.real_time.running import Load, workloads
from benchmarks.stores.driver import Driver
from benchmarks.stores.plan import Run
from benchmarks.stores.results import Record
from benchmarks.stores.runner import RunFailedError
from tests.support.provider import REPOSITORY
from tests.support.spark_version import since

LOAD = Load(seconds=2, warm_up=1, rate=10, keys=5, interval_ms=1000)

# ---- percentiles -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "expected"), [(0, 1), (0.01, 1), (0.5, 50), (0.501, 51), (0.99, 99), (0.991, 100), (1, 100)]
)
def test_percentile_is_a_sample(share: float, expected: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], share) == expected


def test_percentile_of_one_sample_and_of_none() -> None:
    assert percentile([7.0], 0.5) == percentile([7.0], 0.99) == 7
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 0.5)


# ---- pairing ---------------------------------------------------------------------------------------------------------


def sent(*keys: int) -> list[Sent]:
    """Rows of these keys, 10 ms apart."""
    return [Sent(key, number, 1000 + 10 * number) for number, key in enumerate(keys)]


def test_each_count_is_that_of_its_row() -> None:
    outputs = [Output(2, 1, 1, 1011), Output(1, 0, 1, 1012), Output(1, 2, 2, 1025)]
    assert pair_counts(sent(1, 2, 1), outputs) == {0: 1012, 1: 1011, 2: 1025}


def test_one_count_may_be_that_of_several_rows() -> None:
    """As in a micro-batch."""
    assert pair_counts(sent(1, 2, 1, 1), [Output(1, 2, 2, 1040)]) == {0: 1040, 2: 1040}


@pytest.mark.parametrize(
    "outputs",
    [
        [Output(1, 0, 2, 1010)],
        [Output(1, 2, 1, 1030)],
        [Output(1, 0, 1, 1010), Output(1, 0, 1, 1011)],
        [Output(1, 2, 2, 1030), Output(1, 0, 1, 1031)],
        [Output(3, 0, 1, 1010)],
    ],
    ids=["too high", "a row is missing", "twice", "back", "unknown key"],
)
def test_a_wrong_count_is_found(outputs: Sequence[Output]) -> None:
    with pytest.raises(LostRowError):
        pair_counts(sent(1, 2, 1), outputs)


def test_unique_rows_are_paired_by_number() -> None:
    assert pair_unique(sent(1, 2, 1), [Output(1, 2, 1, 1030), Output(1, 0, 1, 1031)]) == {0: 1031, 2: 1030}


@pytest.mark.parametrize("number", [0, 3], ids=["twice", "not sent"])
def test_a_further_unique_row_is_found(number: int) -> None:
    with pytest.raises(LostRowError, match="twice, or was not sent"):
        pair_unique(sent(1, 2, 1), [Output(1, 0, 1, 1010), Output(1, number, 1, 1011)])


# ---- pauses ----------------------------------------------------------------------------------------------------------


def test_batch_of_a_progress_report() -> None:
    progress = {
        "timestamp": "1970-01-01T00:00:10.000Z",
        "durationMs": {"addBatch": 3000, "commitOffsets": 40, "walCommit": 60, "queryPlanning": 80}
        | {"triggerExecution": 3200},
        "stateOperators": [{"numRowsTotal": 3}, {"numRowsTotal": 4}],
    }
    assert Batch.of(progress) == Batch(planned=10_100, ended=13_200, rows=7)


def test_pause_lasts_until_the_first_output_of_the_next_batch() -> None:
    batches = [Batch(100, 1200, 1), Batch(1300, 2400, 1), Batch(2500, 3600, 1)]
    written = [1150, 150, 1400, 1350, 2350]
    assert pauses(batches, 1000, written) == [Pause(1100, 1200, 1350)], "the third batch has no output"


def test_rows_of_a_pause_are_apart() -> None:
    rows = sent(*[1] * 12)  # sent at 1000 to 1110
    written = {row.number: row.sent + 5 + row.number for row in rows}
    breaks = [Pause(1005, 1008, 1012), Pause(1045, 1050, 1060), Pause(1200, 1210, 1220)]
    found = samples_of(rows, written, breaks, first=2)
    assert found["latency_ms"] == [float(5 + number) for number in range(2, 12)]
    assert found["boundary_ms"] == [10, 11], "rows 5 and 6, sent at 1050 and 1060"
    assert found["within_ms"] == [7, 8, 9, 12, 13, 14, 15, 16]
    assert found["pause_ms"] == [15], "neither that of the warm-up nor one after the last row"
    assert found["end_ms"] == [5]


def test_a_row_without_output_is_an_error() -> None:
    rows = sent(1, 2, 1)
    with pytest.raises(LostRowError, match=r"1 rows have no output, such as \[1\]"):
        samples_of(rows, {0: 1010, 2: 1030}, [], first=2)
    with pytest.raises(LostRowError, match="0 are measured"):
        samples_of(rows, {0: 1010, 1: 1015, 2: 1030}, [], first=3)


# ---- runs and tables -------------------------------------------------------------------------------------------------


def test_the_micro_batch_and_the_warm_up_are_not_measured() -> None:
    assert (LOAD.first, LOAD.rows) == (15, 35)


def test_runs_with_other_rows_are_other_runs() -> None:
    others = [Load(3, 1, 10, 5, 1000), Load(2, 2, 10, 5, 1000), Load(2, 1, 20, 5, 1000)]
    others += [Load(2, 1, 10, 6, 1000), Load(2, 1, 10, 5, 2000)]
    runs = {Run(workload, "ckpt", 0) for load in (LOAD, *others) for workload in workloads(load)}
    assert len(runs) == 2 * 6


def test_a_driver_that_ends_early_fails_the_run(tmp_path: Path) -> None:
    driver = Driver("some run", [sys.executable, "-c", "print('no memory')"], tmp_path / "log")
    with pytest.raises(RunFailedError, match=r"some run: .* before it starts; (?s:.*)no memory"):
        driver.await_(lambda: False, "starts")


def records() -> list[Record]:
    (workload, _) = workloads(LOAD)
    latencies = {"ckpt": [[1.0, 3.0, 2.0], [4.0]], "rocksdb": [[4.0, 5.0, 6.0], [2.0]]}
    return [
        Record(Run(workload, provider, number), {"latency_ms": samples}, 5, 0.5, {"cores": 2})
        for provider, rounds in latencies.items()
        for number, samples in enumerate(rounds)
    ]


def test_percentiles_are_over_all_rounds() -> None:
    assert tables.figures(records(), "latency-count", "ckpt", "latency_ms") == {
        "count": 4,
        "p50": 2.5,
        "p99": 4,
        "max": 4,
    }
    assert tables.figures(records(), "latency-count", "ckpt", "pause_ms") == {"count": 0}


def test_ratios_are_ours_to_rocksdbs() -> None:
    found = json.loads(json.dumps(tables.to_json(records())))
    (ratio,) = found["ratios"]
    assert (ratio["measure"], ratio["rival"], ratio["low"], ratio["high"]) == ("latency_ms", "rocksdb", 0.4, 2)
    console = Console(file=io.StringIO(), width=200)
    console.print(tables.figures_table(records(), "latency-count"))
    assert isinstance(console.file, io.StringIO)
    assert "0.56 (0.40 to 2.00)" in console.file.getvalue()


def test_draws_a_plot_per_query(tmp_path: Path) -> None:
    (file,) = plots.draw(records(), tmp_path)
    assert file == tmp_path / "latency-count.png"
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.spark
@pytest.mark.slow
@since("4.3", "state in real-time mode")
def test_measures_ours_and_rocksdbs(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.real_time",
        "--smoke",
        "--json",
        "--results",
        str(tmp_path / "results"),
    ]
    done = subprocess.run([*command, "--work", str(tmp_path / "work")], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    counts = {
        (one["workload"], one["provider"]): one["count"]
        for one in json.loads(done.stdout)["figures"]
        if one["measure"] == "latency_ms"
    }
    assert counts == {(f"latency-{query}", name): 120 for query in ("count", "dedup") for name in ("ckpt", "rocksdb")}
