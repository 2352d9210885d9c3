"""A real ZooKeeper server in its own process, from the jars shipped with PySpark."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pyspark
from kazoo.client import KazooClient

from tests.support.ports import free_port
from tests.support.waiting import PATIENCE, eventually

MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"
TICK_MS = 200

SESSION_SECONDS = 60.0
"""Timeout of sessions that must not expire while the machine stalls."""

_START_SECONDS = 10.0
"""Session timeout while a server starts: it may leave a client without an answer, which then tries again."""


class ZooKeeperServer:
    """One server, with short ticks so that sessions expire soon.

    Args:
        directory: directory of its data and its log.
        config: additional lines of its configuration.
        java_options: additional options of its JVM.
        client_options: kazoo options of the tests' clients.
        port_name: the setting that takes the port.
    """

    def __init__(
        self,
        directory: Path,
        *,
        config: str = "",
        java_options: Sequence[str] = (),
        client_options: Mapping[str, Any] | None = None,
        port_name: str = "clientPort",
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self._config = config
        self._java_options = java_options
        self._client_options = client_options or {}
        self._port_name = port_name
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def quorum(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the server on its data, and waits until it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "zoo.cfg"
        config.write_text(
            f"tickTime={TICK_MS}\ndataDir={self.directory}/data\n{self._port_name}={self.port}\n"
            f"{self._port_name}Address=127.0.0.1\n{self._config}\nadmin.enableServer=false\n"
            f"maxClientCnxns=0\nmaxSessionTimeout={SESSION_SECONDS * 1000:.0f}\n"
        )
        java = str(Path(home, "bin", "java")) if (home := os.environ.get("JAVA_HOME")) else shutil.which("java")
        jars = Path(pyspark.__file__).parent / "jars" / "*"
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(java),
                    "-Xmx192m",
                    "-XX:TieredStopAtLevel=1",
                    *self._java_options,
                    "-cp",
                    str(jars),
                    MAIN,
                    str(config),
                ],
                stdout=log,
                stderr=log,
            )
        with self.client(_START_SECONDS):
            assert self._process.poll() is None, f"another server has taken port {self.port}"

    def stop(self) -> None:
        """Kills the server, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freezes the server in this context: connections stay open, and no request is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def client(self, timeout: float = SESSION_SECONDS) -> Iterator[KazooClient]:
        """A client for the test's own use."""
        client = KazooClient(
            self.quorum,
            timeout=timeout,
            connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 0.2},
            **self._client_options,
        )
        client.start(PATIENCE)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def expire(self, client: KazooClient) -> None:
        """Expires a client's session behind its back, as the server does after too long a silence."""
        other = KazooClient(self.quorum, client_id=client.client_id, timeout=SESSION_SECONDS)
        other.start(PATIENCE)
        other.stop()
        other.close()

    def __enter__(self) -> ZooKeeperServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def await_gone(client: KazooClient, path: str) -> None:
    """Waits until the node does not exist."""
    eventually(lambda: client.exists(path) is None, PATIENCE, f"{path} goes away")
