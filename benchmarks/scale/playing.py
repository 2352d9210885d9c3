"""Batches through the real side process, and what they cost it."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.scale.executors import STORES, Executors
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.format.keys import SubtaskKey
from tests.bridge import wire
from tests.bridge.side_process import MODULE, SideProcess

WARMUPS = 5
"""Batches before those that are measured."""

ACKS_IN_A_MESSAGE = 100
"""Acknowledgements that the driver writes together: those that have arrived while it wrote the ones before."""

_PARTITIONS = 8  # of each of many queries

_PROCESS_CLOCK = 2  # CPUCLOCK_SCHED of clock_getcpuclockid(3)


@dataclass(frozen=True)
class Point:
    """Figures of one number of partitions.

    Args:
        partitions: number of subtasks.
        stores: number of stores, over all subtasks.
        batch_cpu_ms: CPU time of the side process for a batch; median.
        completing_ms: time from the last acknowledgement to its answer, in which the checkpoint is completed; median.
        metadata_bytes: size of the last `_metadata`.
        start_cpu_ms: CPU time of a new side process up to the answer to its first trigger.
        start_ms: the same as wall time, from the launch of the process.
        locate_cpu_ms: CPU time to locate the state of all stores.
        list_ms: duration of `spark-ckpt list`.
        memory_bytes: most memory of the side process.
    """

    partitions: int
    stores: int
    batch_cpu_ms: float
    completing_ms: float
    metadata_bytes: int
    start_cpu_ms: float
    start_ms: float
    locate_cpu_ms: float
    list_ms: float
    memory_bytes: int


def measure(partitions: int, executors: int, batches: int, folder: Path) -> Point:
    """Plays a query with so many partitions.

    Args:
        partitions: number of partitions, with four stores each.
        executors: number of executors that share them.
        batches: number of batches that count.
        folder: folder for the location, which is removed.
    """
    location = folder / f"partitions-{partitions}"
    shutil.rmtree(location, ignore_errors=True)
    players = Executors(str(location), partitions, executors)
    cpu, completing = [], []
    with SideProcess(MODULE) as process:
        process.ask(*wire.START)
        for version in range(1, WARMUPS + batches + 1):
            before = cpu_seconds(process.pid)
            completing.append(_play(process, players, version))
            cpu.append(cpu_seconds(process.pid) - before)
        memory = peak_bytes(process.pid)
        process.kill()
    start_cpu, start, locate = _restart(players, WARMUPS + batches)
    listing = _list(location)
    point = Point(
        partitions,
        partitions * len(STORES),
        statistics.median(cpu[WARMUPS:]) * 1000,
        statistics.median(completing[WARMUPS:]) * 1000,
        _newest_metadata(location).stat().st_size,
        start_cpu * 1000,
        start * 1000,
        locate * 1000,
        listing * 1000,
        memory,
    )
    shutil.rmtree(location)
    return point


@dataclass(frozen=True)
class ManyQueries:
    """Figures of a driver with many queries, each a join in eight partitions.

    Args:
        queries: number of queries.
        batch_cpu_ms: CPU time of the side process for a batch of one query; mean.
        memory_bytes: most memory of the side process.
    """

    queries: int
    batch_cpu_ms: float
    memory_bytes: int


def measure_queries(queries: int, batches: int, folder: Path) -> ManyQueries:
    """Plays many queries in turns through one side process.

    Args:
        queries: number of queries.
        batches: number of batches that count, of each.
        folder: folder for the locations, which are removed.
    """
    location = folder / "queries"
    shutil.rmtree(location, ignore_errors=True)
    players = [Executors(str(location / str(n)), _PARTITIONS, job=f"run-{n}") for n in range(queries)]
    began = 0.0
    with SideProcess(MODULE) as process:
        process.ask(*wire.START)
        for version in range(1, WARMUPS + batches + 1):
            if version == WARMUPS + 1:
                began = cpu_seconds(process.pid)
            for player in players:
                _play(process, player, version)
        cpu, memory = cpu_seconds(process.pid) - began, peak_bytes(process.pid)
        process.kill()
    shutil.rmtree(location)
    return ManyQueries(queries, cpu * 1000 / (queries * batches), memory)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, with all of its threads."""
    return time.clock_gettime((~pid << 3) | _PROCESS_CLOCK)


def peak_bytes(pid: int) -> int:
    """Most memory that a process has had (`VmHWM`)."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no memory")


def _play(process: SideProcess, players: Executors, version: int) -> float:
    """Plays a batch. Returns the seconds from the last acknowledgement to its answer."""
    reply, _ = process.ask(*players.trigger(version))
    acks = players.acknowledgements(version, tuple(reply["key_group_factors"]))
    asked: dict[int, SubtaskKey] = {}
    subtasks = players.subtasks
    due = set()
    last: Mapping[str, Any] = {}
    sent = 0.0
    for group in _groups(acks, ACKS_IN_A_MESSAGE):
        sent = time.perf_counter()
        numbers = process.send(*group)
        asked |= zip(numbers, subtasks, strict=False)
        for answer in _answers(process, len(group)):
            last = json.loads(answer.header)
            if answer.kind != "ok":
                raise AssertionError(f"{asked[answer.id]}: {last}")
            if last["compaction"]["kind"] == "full":
                due.add(asked[answer.id])
    took = time.perf_counter() - sent
    players.due = due
    if last.get("completed_version") != version:
        raise AssertionError(f"version {version} is incomplete after its last ack: {last}")
    return took


def _restart(players: Executors, version: int) -> tuple[float, float, float]:
    """CPU and wall seconds of a start from the location, and CPU seconds to locate all of its state."""
    began = time.perf_counter()
    with SideProcess(MODULE) as process:
        process.ask(*wire.START)
        process.ask(*players.trigger(version + 1, job="next"))
        start, start_cpu = time.perf_counter() - began, cpu_seconds(process.pid)
        requests = (wire.locate("next", subtask, version) for subtask in players.subtasks)
        for group in _groups(requests, ACKS_IN_A_MESSAGE):
            process.send(*group)
            for answer in _answers(process, len(group)):
                if answer.kind != "ok":
                    raise AssertionError(answer.header)
        locate = cpu_seconds(process.pid) - start_cpu
        process.kill()
    return start_cpu, start, locate


def _list(location: Path) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "spark_ckpt", "list", str(location)], check=True, capture_output=True)
    return time.perf_counter() - began


def _answers(process: SideProcess, count: int) -> Iterator[Message]:
    for _ in range(count):
        yield process.receive()


def _groups(requests: Iterator[wire.Request], size: int) -> Iterator[Sequence[wire.Request]]:
    while group := list(islice(requests, size)):
        yield group


def _newest_metadata(location: Path) -> Path:
    return max((location / "ckpt").glob("chk-*/_metadata"), key=lambda file: int(file.parent.name[4:]))
