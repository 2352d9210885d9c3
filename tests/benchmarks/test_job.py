from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.stores.data import prepare
from benchmarks.stores.figures import Memory
from benchmarks.stores.job import Job, Order
from benchmarks.stores.workloads import WORKLOADS

MIB = 1 << 20


def job(folder: Path, workload: str, spark: Any = None, *, is_restart: bool = False) -> Job:
    small = WORKLOADS[workload].scaled(0.001, 2)
    feed = prepare(folder / "input", small, 1)
    return Job(spark, Order(small, str(feed), str(folder / "work"), "unused", is_restart=is_restart))


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder / "work")) for file in (folder / "work").rglob("*.parquet"))


def test_an_order_comes_back_as_it_was() -> None:
    order = Order(WORKLOADS["s3-8-30ms"], "feed", "work", "s3a://bucket/location")
    assert Order.of_json(json.dumps(asdict(order))) == order


def test_drops_the_batches_of_both_streams_in_their_order(tmp_path: Path) -> None:
    join = job(tmp_path, "join")
    assert files(tmp_path) == []
    join._drop(1)
    assert files(tmp_path) == ["left/000000.parquet", "right/000000.parquet"]
    join._drop(2)
    assert files(tmp_path) == [f"{side}/00000{number}.parquet" for side in ("left", "right") for number in range(3)]


def test_a_restart_continues_with_the_input_of_the_run_before(tmp_path: Path) -> None:
    job(tmp_path, "short")._drop(3)
    job(tmp_path, "short", is_restart=True)._drop(1)
    assert files(tmp_path) == [f"events/00000{number}.parquet" for number in range(4)]
    with pytest.raises(FileExistsError):
        job(tmp_path, "short")


def test_memory_is_the_heap_in_use_and_what_is_resident_beside_the_heap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that holds 64 MiB stands in for the JVM."""
    program = "held = b'x' * (64 << 20); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        monkeypatch.setattr(os, "getppid", lambda: holder.pid)
        runtime = SimpleNamespace(gc=lambda: None, totalMemory=lambda: 50 * MIB, freeMemory=lambda: 20 * MIB)
        lang = SimpleNamespace(Runtime=SimpleNamespace(getRuntime=lambda: runtime))
        jvm = SimpleNamespace(java=SimpleNamespace(lang=lang))
        seen = job(tmp_path, "memory", SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm)))._look()
        holder.communicate(b"\n")
    assert isinstance(seen, Memory)
    assert seen.heap == 30 * MIB
    assert 14 * MIB < seen.native < 50 * MIB
