"""Starts Flink's JVMs for a query and a state backend, and collects its measurements."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.flink.inputs import Input
from benchmarks.flink.releases import Release
from benchmarks.flink.sql import QUERIES
from benchmarks.flink.standalone import OPENED, Session
from benchmarks.stores.runner import RunFailedError, end_of

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

_CLIENT_HEAP = "512m"
"""Heap of the JVM that submits jobs to a session."""


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
        cpu_seconds: CPU time of all JVMs meanwhile, planning included.
        checkpoint_ms: duration of each completed checkpoint.
        checkpoint_bytes: bytes that each of them wrote.
        state_bytes: bytes of the whole state in each.
    """

    seconds: float
    cpu_seconds: float
    checkpoint_ms: tuple[int, ...]
    checkpoint_bytes: tuple[int, ...]
    state_bytes: tuple[int, ...]


Outcome = tuple[Answer, list[Round]]
"""Answer of a query, and its measured rounds."""


@dataclass(frozen=True)
class Setup:
    """What runs a query beside its state backend.

    Args:
        release: release of Flink.
        heap: heap of the JVM, or of the session's task manager, in Java's notation; all of it is resident from the
            start.
        is_session: whether a standalone session runs the jobs; otherwise the JVM that submits them.
    """

    release: Release
    heap: str
    is_session: bool = False


def run(query: str, backend: str, events: Input, rounds: int, setup: Setup, work: Path, log: Path) -> Outcome:
    """Runs a query in new JVMs: once to check the answer, once to warm up, then the measured rounds.

    Args:
        query: its name.
        backend: a key of `BACKENDS`.
        events: events to read.
        rounds: measured rounds.
        setup: the rest.
        work: folder for checkpoints; deleted.
        log: file for what the JVMs print beside their results.

    Raises:
        RunFailedError: a JVM ended early.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log.unlink(missing_ok=True)
    try:
        if not setup.is_session:
            order = write_order(work, query, backend, events, rounds)
            return _outcome(_submit(query, backend, rounds, command_of(setup.release, setup.heap, order), log))
        settings = {**_SETTINGS, **BACKENDS[backend]}
        with Session(setup.release, os.cpu_count() or 1, setup.heap, settings, work / "session", log) as session:
            pids = ",".join(map(str, session.pids))
            cluster = {"cluster": session.address, "processes": pids}
            order = write_order(work, query, backend, events, rounds, more=cluster)
            lines = _submit(query, backend, rounds, command_of(setup.release, _CLIENT_HEAP, order), log)
            return _outcome([lines[0], *(_with_checkpoints(session, line) for line in lines[1:])])
    finally:
        shutil.rmtree(work)


def _submit(query: str, backend: str, rounds: int, command: Sequence[str], log: Path) -> list[Mapping[str, Any]]:
    with log.open("ab") as errors:
        printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, check=False, text=True)
    lines = [json.loads(line) for line in printed.stdout.splitlines() if line.startswith("{")]
    if printed.returncode or len(lines) != rounds + 1:
        raise RunFailedError(f"{query} on {backend}: Flink ended early; {end_of(log)}")
    return lines


def _with_checkpoints(session: Session, line: Mapping[str, Any]) -> Mapping[str, Any]:
    """A job's line with its checkpoints, which only the session knows."""
    found = session.checkpoints(line["job"])
    names = {
        "checkpoint_ms": "end_to_end_duration",
        "checkpoint_bytes": "checkpointed_size",
        "state_bytes": "state_size",
    }
    return {**line, **{name: [one[field] for one in found] for name, field in names.items()}}


def _outcome(lines: Sequence[Mapping[str, Any]]) -> Outcome:
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
    events: Input,
    rounds: int,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    more: Mapping[str, str] = MappingProxyType({}),
    is_checked: bool = True,
    parallelism: int | None = None,
) -> Path:
    """Writes the order of a JVM to a file.

    Args:
        work: folder for the file and for checkpoints.
        query: name of the query.
        backend: a key of `BACKENDS`.
        events: events to read.
        rounds: measured rounds, after one that warms up.
        settings: more settings of Flink.
        more: more lines.
        is_checked: whether the answer is checked first.
        parallelism: subtasks of each operator; by default one per core.
    """
    of = QUERIES[query]
    lines = {
        **events.lines(of),
        **more,
        "checkpoints": str(work / "checkpoints"),
        "parallelism": str(parallelism or os.cpu_count()),
        "rounds": str(rounds),
        "query": of.sql,
        "checked": ",".join(of.checked) if is_checked else "",
        **{f"flink.{name}": value for name, value in {**_SETTINGS, **BACKENDS[backend], **settings}.items()},
    }
    order = work / "order.properties"
    text = "".join(f"{name}={' '.join(value.split())}\n" for name, value in lines.items())
    order.write_text(text, encoding="utf-8")
    return order


def command_of(release: Release, heap: str, order: Path) -> list[str]:
    """Command that starts a JVM with an order."""
    return [
        "java",
        *(f"-Xm{which}{heap}" for which in "sx"),
        "-XX:+AlwaysPreTouch",
        *OPENED,
        *("-cp", release.class_path),
        "io.github.sparkckpt.flinkbench.NexmarkJob",
        str(order),
    ]
