"""Starts Flink's JVM for a query and a state backend, and collects its measurements."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq

from benchmarks.flink.sql import QUERIES
from benchmarks.nexmark.generator import ROW_GROUP
from benchmarks.stores.machine import REPOSITORY
from benchmarks.stores.runner import RunFailedError, end_of

MODULE = REPOSITORY / "jvm-shim" / "flink-bench" / "target"
"""Jar of the job, and the class path that Maven wrote beside it."""

BACKENDS: Mapping[str, Mapping[str, str]] = {
    "flink-hashmap": {"state.backend.type": "hashmap"},
    "flink-rocksdb": {
        "state.backend.type": "rocksdb",
        "execution.checkpointing.incremental": "true",
        "taskmanager.memory.managed.size": "1g",
    },
}
"""Settings of Flink by the name of the set-up."""

_SETTINGS = {
    "restart-strategy.type": "none",
    "execution.checkpointing.interval": "1s",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2s",
    "table.exec.mini-batch.size": "5000",
}
"""Mini-batches are set as in Nexmark for Flink."""

_OPENED = ("java.lang", "java.net", "java.io", "java.nio", "java.util", "java.time", "java.util.concurrent")


@dataclass(frozen=True)
class Answer:
    """Digest of an answer.

    Args:
        rows: number of rows.
        sums: sums of the checked columns.
    """

    rows: int
    sums: tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """One run of a query, from the first event to the end of the input.

    Args:
        seconds: time of the job.
        cpu_seconds: CPU time of the JVM meanwhile, planning included.
        checkpoint_ms: duration of each completed checkpoint.
        checkpoint_bytes: bytes that each of them wrote.
        state_bytes: bytes of the whole state in each.
    """

    seconds: float
    cpu_seconds: float
    checkpoint_ms: tuple[int, ...]
    checkpoint_bytes: tuple[int, ...]
    state_bytes: tuple[int, ...]


def flattened(feed: Path) -> Path:
    """The same events in files beside them with a column per field: Flink's reader cannot skip fields of a struct."""
    target = feed.with_name(f"{feed.name}-flat")
    if not target.exists():
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for file in sorted(feed.iterdir()):
            events = pq.read_table(file).flatten()
            flat = events.rename_columns([name.replace(".", "_") for name in events.column_names])
            pq.write_table(flat, partial / file.name, row_group_size=ROW_GROUP)
        partial.rename(target)
    return target


def run(
    query: str, backend: str, feed: Path, files: int, rounds: int, heap: str, work: Path, log: Path
) -> tuple[Answer, list[Round]]:
    """Runs a query in a new JVM: once to check the answer, once to warm up, then the measured rounds.

    Args:
        query: its name.
        backend: a key of `BACKENDS`.
        feed: folder of Parquet files with events, as `flattened` returns it.
        files: number of files to read, the first by name.
        rounds: measured rounds.
        heap: heap of the JVM in Java's notation; all of it is resident from the start.
        work: folder for checkpoints; deleted.
        log: file for what the JVM prints beside its results.

    Raises:
        RunFailedError: the JVM ended early.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    order = write_order(work, query, backend, feed, files, rounds)
    with log.open("wb") as errors:
        command = command_of(heap, order)
        printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, check=False, text=True)
    shutil.rmtree(work)
    lines = [json.loads(line) for line in printed.stdout.splitlines() if line.startswith("{")]
    if printed.returncode or len(lines) != rounds + 1:
        raise RunFailedError(f"{query} on {backend}: Flink ended early; {end_of(log)}")
    return Answer(lines[0]["rows"], tuple(lines[0]["sums"])), [_round(line) for line in lines[1:]]


def _round(line: Mapping[str, Any]) -> Round:
    return Round(
        line["seconds"],
        line["cpu_seconds"],
        tuple(line["checkpoint_ms"]),
        tuple(line["checkpoint_bytes"]),
        tuple(line["state_bytes"]),
    )


def write_order(
    work: Path,
    query: str,
    backend: str,
    feed: Path,
    files: int,
    rounds: int,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    is_checked: bool = True,
    parallelism: int | None = None,
) -> Path:
    """Writes the order of a JVM to a file.

    Args:
        work: folder for the file and for checkpoints.
        query: name of the query.
        backend: a key of `BACKENDS`.
        feed: folder of Parquet files with events, as `flattened` returns it.
        files: number of files to read, the first by name.
        rounds: measured rounds, after one that warms up.
        settings: more settings of Flink.
        is_checked: whether the answer is checked first.
        parallelism: subtasks of each operator; by default one per core.
    """
    of = QUERIES[query]
    lines = {
        "feed": str(feed),
        "files": str(files),
        "checkpoints": str(work / "checkpoints"),
        "parallelism": str(parallelism or os.cpu_count()),
        "rounds": str(rounds),
        "type": of.type,
        "views": of.views,
        "query": of.sql,
        "checked": ",".join(of.checked) if is_checked else "",
        **{f"flink.{name}": value for name, value in {**_SETTINGS, **BACKENDS[backend], **settings}.items()},
    }
    order = work / "order.properties"
    text = "".join(f"{name}={' '.join(value.split())}\n" for name, value in lines.items())
    order.write_text(text, encoding="utf-8")
    return order


def command_of(heap: str, order: Path) -> list[str]:
    """Command that starts a JVM with an order."""
    class_path = (MODULE / "classpath.txt").read_text(encoding="utf-8").strip()
    return [
        "java",
        *(f"-Xm{which}{heap}" for which in "sx"),
        "-XX:+AlwaysPreTouch",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *("-cp", f"{MODULE / 'flink-bench.jar'}{os.pathsep}{class_path}"),
        "io.github.sparkckpt.flinkbench.NexmarkJob",
        str(order),
    ]
