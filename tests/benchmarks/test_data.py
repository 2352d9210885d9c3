from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.stores.data import HORIZON_SECONDS, Ints, batches, name_of, prepare
from benchmarks.stores.workloads import WORKLOADS, Workload

HORIZON = HORIZON_SECONDS * 1_000_000
SMALL = {
    query: Workload(query, query, query=query, keys=1000, changed=100, warmups=2, batches=6)
    for query in ("count", "totals", "join", "dedup", "session")
}


def made(workload: Workload, seed: int = 1) -> list[Mapping[str, pa.Table]]:
    return list(batches(workload, seed))


def times(table: pa.Table) -> Ints:
    return np.asarray(table["time"].cast(pa.int64()))


def keys(table: pa.Table) -> list[int]:
    return list(table["key"].to_pylist())


@pytest.mark.parametrize("workload", SMALL.values(), ids=SMALL)
def test_loads_all_keys_and_then_changes_as_many_in_each_batch(workload: Workload) -> None:
    load, *rest = made(workload)
    assert all(len(table) == 1000 for table in load.values())
    assert [len(table) for batch in rest for table in batch.values()] == [100] * 8 * len(load)


@pytest.mark.parametrize("workload", SMALL.values(), ids=SMALL)
def test_the_seed_decides(workload: Workload) -> None:
    assert made(workload, 1) == made(workload, 1)
    assert made(workload, 1) != made(workload, 2)


def test_counts_distinct_keys_of_the_load() -> None:
    load, *rest = made(SMALL["count"])
    assert keys(load["events"]) == list(range(1000))
    for batch in rest:
        assert len(set(keys(batch["events"])) & set(range(1000))) == 100
    assert keys(rest[0]["events"]) != keys(rest[1]["events"])


def test_likely_keys_of_a_zipf_distribution_recur() -> None:
    skewed = Workload("zipf", "zipf", query="totals", keys=10_000, changed=100, skew=0.99, warmups=0, batches=50)
    drawn = [keys(batch["events"]) for batch in made(skewed)[1:]]
    assert all(len(set(batch)) == 100 for batch in drawn)
    often = [key for key in range(10_000) if sum(key in batch for batch in drawn) >= 25]
    assert 10 < len(often) < 40  # of a uniform distribution: none
    assert max(often) > 100  # not the first keys of the load
    assert len({key for batch in drawn for key in batch}) > 1000


@pytest.mark.parametrize("query", ["join", "dedup", "session"])
def test_nothing_is_late(query: str) -> None:
    latest: dict[str, int] = {}
    for batch in made(SMALL[query]):
        for stream, table in batch.items():
            assert times(table).min() > latest.get(stream, 0)
            latest[stream] = times(table).max()


@pytest.mark.parametrize("query", ["join", "dedup", "session"])
def test_the_load_covers_a_horizon(query: str) -> None:
    for table in made(SMALL[query])[0].values():
        assert times(table).max() - times(table).min() == HORIZON * 999 // 1000


def test_partners_of_a_join_are_near_and_not_always_in_the_same_batch() -> None:
    found = made(SMALL["join"])
    moments = {
        stream: dict(pair for batch in found for pair in zip(keys(batch[stream]), times(batch[stream]), strict=True))
        for stream in ("left", "right")
    }
    assert moments["left"].keys() == moments["right"].keys()
    assert len(moments["left"]) == 1800
    apart = [abs(moments["left"][key] - moments["right"][key]) for key in moments["left"]]
    assert HORIZON / 4 < max(apart) <= HORIZON / 2
    assert any(set(keys(batch["left"])) != set(keys(batch["right"])) for batch in found[1:])


@pytest.mark.parametrize("query", ["dedup", "session"])
def test_half_of_a_batch_is_known_already(query: str) -> None:
    load, *rest = made(SMALL[query])
    seen = set(keys(load["events"]))
    for batch in rest:
        found = keys(batch["events"])
        assert len(set(found) - seen) == 50
        assert sum(key in seen for key in found) == 50
        # Seen keys come from the younger half, so that none has expired.
        assert min(found) >= max(seen) + 1 - 500
        seen |= set(found)


def test_writes_a_file_a_batch_in_the_order_of_the_batches(tmp_path: Path) -> None:
    folder = prepare(tmp_path, SMALL["join"], 1)
    for stream in ("left", "right"):
        files = sorted((folder / stream).iterdir(), key=lambda file: file.stat().st_mtime)
        assert files == sorted(files)
        assert [pq.read_table(file) for file in files] == [batch[stream] for batch in made(SMALL["join"])]
    assert {folder.name for folder in folder.iterdir()} == {"left", "right"}


def test_writes_the_same_input_once(tmp_path: Path) -> None:
    folder = prepare(tmp_path, SMALL["count"], 1)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    assert prepare(tmp_path, replace(SMALL["count"], partitions=200), 1) == folder
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before
    assert prepare(tmp_path, SMALL["count"], 2) != folder
    assert prepare(tmp_path, replace(SMALL["count"], changed=99), 1) != folder
    assert prepare(tmp_path, replace(SMALL["count"], skew=0.99), 1) != folder


def test_begins_anew_after_it_was_broken_off(tmp_path: Path) -> None:
    whole = prepare(tmp_path / "a", SMALL["count"], 1)
    partial = tmp_path / "b" / f"{whole.name}.partial" / "events"
    partial.mkdir(parents=True)
    (partial / "stray.parquet").write_bytes(b"half a file")
    again = prepare(tmp_path / "b", SMALL["count"], 1)
    assert sorted(f.name for f in (again / "events").iterdir()) == sorted(f.name for f in (whole / "events").iterdir())


@pytest.mark.parametrize("name", ["keys-8m", "memory"])
def test_loads_in_the_sizes_that_the_workload_says(name: str) -> None:
    workload = WORKLOADS[name].scaled(0.001, 1)
    sizes = [len(batch["events"]) for batch in made(workload)][: len(workload.loads)]
    assert sizes == list(workload.loads)


def test_names_of_inputs_are_short_and_tell_different_inputs_apart() -> None:
    inputs: dict[str, tuple[object, ...]] = {}
    for workload in WORKLOADS.values():
        if workload.kind == "coordinator":
            continue
        name = name_of(workload, 2013)
        assert len(name) < 100, "file names end at 255 characters"
        written = workload.query, workload.loads, workload.changes, workload.changed, workload.skew
        assert inputs.setdefault(name, written) == written
    assert len(inputs) > 10
