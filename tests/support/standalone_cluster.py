"""A real standalone cluster on PySpark's own jars: a master and workers, each in its own JVM."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import TracebackType

import pyspark

from tests.support.class_archive import quick_start
from tests.support.processes import descendants, find_below, kill
from tests.support.waiting import eventually

SPARK_HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
EXECUTOR = "CoarseGrainedExecutorBackend"


class StandaloneCluster:
    """Master and workers with one core each; executors are child processes of the workers.

    Each worker has its own address: Spark does not start a speculative copy of a task on the task's host.
    """

    def __init__(self, folder: Path, workers: int = 2, memory: str = "1g") -> None:
        self.folder = folder
        self.url = ""
        """URL of the master; empty until the master is up."""
        self._count, self._memory = workers, memory
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> StandaloneCluster:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start("master", HOST, "org.apache.spark.deploy.master.Master", "--port", "0")
            listening = self._await_text("master", r"sparkMaster. on port (\d+)")
            self.url = f"spark://{HOST}:{listening[1]}"
            self._await_text("master", "I have been elected leader")
            for _ in range(self._count):
                self.add_worker()
            for number in range(self._count):
                self._await_text(f"worker-{number}", "Successfully registered with master")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes started here, executors first."""
        for daemon in reversed(self._daemons):
            for pid in [*reversed(descendants(daemon.pid)), daemon.pid]:
                kill(pid)
            daemon.wait()
        self._daemons.clear()

    def add_worker(self) -> None:
        """Starts one more worker; each running application gets one more executor there."""
        number = len(self.workers)
        work = ["--cores", "1", "--memory", self._memory, "--work-dir", str(self.folder / f"work-{number}"), self.url]
        host = f"127.0.0.{number + 1}"
        self.workers.append(self._start(f"worker-{number}", host, "org.apache.spark.deploy.worker.Worker", *work))

    def executors(self) -> list[int]:
        """Pids of the running executor JVMs."""
        return [pid for worker in self.workers for pid in find_below(worker.pid, EXECUTOR)]

    def _start(self, name: str, host: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(SPARK_HOME / "bin" / "spark-class"), main, "--host", host, "--webui-port", "0", *arguments]
        environment = os.environ | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": quick_start(),
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self._daemons.append(daemon)
        return daemon

    def _await_text(self, name: str, pattern: str) -> re.Match[str]:
        log = self.folder / f"{name}.log"

        def text() -> str:
            return log.read_text(errors="replace")

        def found() -> re.Match[str] | None:
            match = re.search(pattern, text())
            running = all(daemon.poll() is None for daemon in self._daemons)
            assert match or running, f"{name} has ended:\n{text()[-4000:]}"
            return match

        match = eventually(found, what=lambda: f"{name} comes up:\n{text()[-4000:]}")
        assert match is not None
        return match
