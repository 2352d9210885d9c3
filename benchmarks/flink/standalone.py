"""A standalone session of Flink: a job manager and a task manager in JVMs of their own, on loopback."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.flink.releases import Release
from benchmarks.stores.runner import RunFailedError, end_of
from tests.support.ports import free_port

OPENED = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.net", "java.io", "java.nio", "java.util", "java.time", "java.util.concurrent")
)
"""Packages of the JDK that Flink's own scripts open."""

_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_MANAGER_HEAP = "512m"
_HOST = "127.0.0.1"
_PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.1

_MEMORY = {
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "192m",
    "taskmanager.memory.jvm-overhead.max": "192m",
}
"""What Flink's scripts work out for a task manager."""


class Session:
    """A running session, as a context manager.

    Args:
        release: release of Flink.
        slots: subtasks of each operator.
        heap: heap of the task manager in Java's notation; all of it is resident from the start.
        settings: settings of Flink, the state backend's included.
        folder: folder for its configuration; made.
        log: file for what both JVMs print.
    """

    def __init__(
        self, release: Release, slots: int, heap: str, settings: Mapping[str, str], folder: Path, log: Path
    ) -> None:
        self.port = free_port()
        self._release = release
        self._heap = heap
        self._folder = folder
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []
        self._settings = {
            "taskmanager.memory.managed.size": "64m",
            **settings,
            **_MEMORY,
            "taskmanager.memory.task.heap.size": heap,
            "taskmanager.cpu.cores": str(slots),
            "taskmanager.numberOfTaskSlots": str(slots),
            "taskmanager.host": _HOST,
            "jobmanager.rpc.address": _HOST,
            "jobmanager.rpc.port": str(free_port()),
            "rest.address": _HOST,
            "rest.bind-address": _HOST,
            "rest.port": str(self.port),
            "web.checkpoints.history": "10000",
            "jobstore.expiration-time": "86400",
        }

    @property
    def address(self) -> str:
        """Host and port of its REST interface, for clients."""
        return f"{_HOST}:{self.port}"

    @property
    def pids(self) -> list[int]:
        """Its processes."""
        return [process.pid for process in self._processes]

    def checkpoints(self, job: str) -> list[Mapping[str, Any]]:
        """Completed checkpoints of a job, oldest first: `CheckpointStatistics` of Flink's REST interface."""
        history = self._get(f"/jobs/{job}/checkpoints")["history"]
        return [one for one in reversed(history) if one["status"] == "COMPLETED"]

    def __enter__(self) -> Session:
        self._folder.mkdir(parents=True)
        lines = [f"{name}: {value}\n" for name, value in self._settings.items()]
        (self._folder / "config.yaml").write_text("".join(lines), encoding="utf-8")
        try:
            for program, heap in ((_JOB_MANAGER, _MANAGER_HEAP), (_TASK_MANAGER, self._heap)):
                self._processes.append(self._start(program, heap))
            self._await_slots()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _start(self, program: str, heap: str) -> subprocess.Popen[bytes]:
        command = ["java", *(f"-Xm{which}{heap}" for which in "sx"), "-XX:+AlwaysPreTouch", *OPENED]
        command += ["-cp", self._release.class_path, program, "--configDir", str(self._folder)]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _await_slots(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._has_slots():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                raise RunFailedError(f"Flink's session did not start; {end_of(self._log)}")
            time.sleep(_LOOK_SECONDS)

    def _has_slots(self) -> bool:
        try:
            return bool(self._get("/overview")["slots-available"])
        except (urllib.error.URLError, ConnectionError):
            return False

    def _get(self, path: str) -> Any:  # noqa: ANN401 (JSON)
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=_PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
