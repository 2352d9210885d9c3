"""A real Spark Connect server on loopback, in a JVM of its own, set up as in docs/connect.md."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from pyspark.sql.connect.session import SparkSession

from spark_ckpt.jars import jar_path
from tests.support.gateway import PYSPARK_JARS
from tests.support.processes import descendants, kill
from tests.support.session import SMALL_CONF
from tests.support.submitted import PROPERTIES, SPARK_SUBMIT
from tests.support.waiting import eventually

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
PATIENCE = 600.0


class ConnectServer:
    """The server, with our settings given at its start."""

    def __init__(self, folder: Path, settings: Mapping[str, str], *, jars: Sequence[Path] = ()) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = int(free.getsockname()[1])
        conf = SMALL_CONF | {"spark.sql.warehouse.dir": str(folder / "warehouse")} | dict(settings)
        conf |= {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
        }
        command = [str(SPARK_SUBMIT), "--master", "local[2]", "--class", SERVER]
        command += ["--properties-file", str(PROPERTIES), "--jars", ",".join(map(str, [jar_path(), *jars]))]
        for key, value in conf.items():
            command += ["--conf", f"{key}={value}"]
        self.log = folder / "connect-server.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "spark-internal"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=os.environ | {"SPARK_HOME": str(PYSPARK_JARS.parent)},
                start_new_session=True,
            )

    def output(self) -> str:
        """The server's output so far."""
        return self.log.read_text(errors="replace")

    @property
    def address(self) -> str:
        """Address for clients."""
        return f"sc://127.0.0.1:{self._port}"

    def session(self) -> SparkSession:
        """A new session of a new client."""
        return SparkSession.builder.remote(self.address).create()

    def __enter__(self) -> ConnectServer:
        try:
            eventually(self._is_up, PATIENCE, lambda: f"the server starts:\n{self.output()[-6000:]}")
        except BaseException:
            self.close()
            raise
        return self

    def _is_up(self) -> bool:
        assert self._process.poll() is None, f"the server has ended:\n{self.output()[-6000:]}"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def close(self) -> None:
        """Kills the server and its processes."""
        for pid in [*descendants(self._process.pid), self._process.pid]:
            kill(pid)
        self._process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
