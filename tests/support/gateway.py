"""A JVM of Hadoop's test clusters, with PySpark's jars and the shim, reached over Py4J."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway

from tests.support.class_archive import QUICK_START

JVM_OPTIONS = (
    "-Xmx512m",
    *QUICK_START.split(),
    "--add-opens=java.base/java.nio=ALL-UNNAMED",  # for Arrow
    "--add-opens=java.base/java.lang=ALL-UNNAMED",  # for the injection of YARN's web services
)
PYSPARK_JARS = Path(pyspark.__file__).parent / "jars"


def class_path(entries: Sequence[Path]) -> str:
    """Class path of the entries, then PySpark's jars; a name `*` stands for all jars of its directory."""
    return ":".join(map(str, [*entries, PYSPARK_JARS / "*"]))


class GatewayJvm:
    """A JVM with a Py4J server. It ends with `close`, and also when this process is killed.

    Args:
        entries: class path in front of PySpark's jars.
        directory: its working directory.
        log: its log file.
    """

    def __init__(self, entries: Sequence[Path], directory: Path, log: Path) -> None:
        self._log = log.open("wb")
        # It exits at the end of its standard input, and therefore also when this process is killed.
        main = ["py4j.GatewayServer", "--die-on-broken-pipe", "0"]
        self.process = subprocess.Popen(
            ["java", *JVM_OPTIONS, "-cp", class_path(entries), *main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=directory,
        )
        assert self.process.stdout is not None
        parameters = GatewayParameters(port=int(self.process.stdout.readline()), auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self.classes: Any = self._gateway.jvm
        """The packages of the JVM."""

    def close(self) -> None:
        """Kills the JVM."""
        self._gateway.close()
        self.process.kill()
        self.process.wait()
        self._log.close()
