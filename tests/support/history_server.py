"""Spark's event log and History Server."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from spark_ckpt.jars import jar_path
from tests.support.gateway import PYSPARK_JARS
from tests.support.processes import descendants, kill
from tests.support.waiting import eventually

LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}


def event_log(folder: Path) -> list[str]:
    """Options for an event log."""
    folder.mkdir()
    conf = {"enabled": "true", "dir": folder.as_uri(), "compress": "false"}
    return [part for key, value in conf.items() for part in ("--conf", f"spark.eventLog.{key}={value}")]


class HistoryServer:
    """A History Server of event logs, started as the documentation says."""

    def __init__(self, logs: Path, folder: Path) -> None:
        self._log = folder / "history-server.log"
        options = {"spark.history.fs.logDirectory": logs.as_uri(), "spark.history.ui.port": "0"}
        environment = os.environ | LOOPBACK | {"SPARK_HOME": str(PYSPARK_JARS.parent)}
        environment["SPARK_DAEMON_CLASSPATH"] = str(jar_path())
        environment["SPARK_HISTORY_OPTS"] = " ".join(f"-D{key}={value}" for key, value in options.items())
        main = "org.apache.spark.deploy.history.HistoryServer"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(PYSPARK_JARS.parent / "bin" / "spark-class"), main],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def address(self) -> str:
        """Its address; waits for it."""

        def look() -> re.Match[str] | None:
            assert self._process.poll() is None, self._output()
            return re.search(r"HistoryServer.*started at (http://\S+)", self._output())

        found = eventually(look, what=self._output)
        assert found is not None
        return found.group(1)

    def _output(self) -> str:
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """Kills it. Fails if one of its threads has an uncaught error."""
        for pid in [*descendants(self._process.pid), self._process.pid]:
            kill(pid)
        self._process.wait()
        assert not re.search("Exception in thread|This should not happen", self._output()), self._output()
