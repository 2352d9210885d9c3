"""A JVM that runs Spark suites with ScalaTest, and is killed if a suite exceeds its limit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from spark_ckpt.jars import jar_path
from tests.suites.events import EventLog
from tests.suites.planned import LISTENER
from tests.suites.results import End, SuiteResult
from tests.suites.suites import Suite
from tests.support.maven import build
from tests.support.processes import descendants, kill
from tests.support.provider import REPOSITORY, ProviderUnderTest
from tests.support.session import use_this_python
from tests.support.spark_version import MINOR

MODULE = REPOSITORY / "jvm-shim" / "spark-suites"
PACKAGE = "io.github.sparkckpt.sparksuites"
TARGET = MODULE / "target" / f"spark-{MINOR}"
JAR = "spark-suites.jar"

_OPENED = (
    *("java.io", "java.lang", "java.lang.invoke", "java.lang.reflect", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)

_OPTIONS = (
    *("-ea", "-Xmx4g", "-Xss4m", "-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1", "-XX:+EnableDynamicAgentLoading"),
    *(
        "-XX:+IgnoreUnrecognizedVMOptions",
        "--add-modules=jdk.incubator.vector",
    ),
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
)
"""JVM options with which Spark's parent pom runs its tests (`extraJavaTestArgs`), as far as they matter here."""

_PROPERTIES = {
    "derby.system.durability": "test",
    "file.encoding": "UTF-8",
    "java.awt.headless": "true",
    "spark.hadoop.hadoop.caller.context.enabled": "true",
    "spark.testing": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.unsafe.exceptionOnMemoryLeak": "true",
}
"""System properties of ScalaTest's plugin in that pom, as far as they matter here."""

_POLL = 0.3


@lru_cache
def built_jar() -> Path:
    """Our jar with the suites and the agent, for the Spark of this environment. Beside it lies what it needs."""
    return build(MODULE, f"{TARGET.name}/{JAR}", f"-Dspark.minor={MINOR}")


@lru_cache
def class_path() -> str:
    """Class path with our classes before Spark's test jar, and the jar's resources, as files, before the jar."""
    target = built_jar().parent
    spark = (target / "spark.classpath").read_text(encoding="utf-8").strip()
    parts = [target / JAR, jar_path(), target / "resources", target / "jars" / "*", spark]
    return os.pathsep.join(map(str, parts))


def spark_tests() -> Path:
    """The jar with the classes of Spark's tests."""
    (jar,) = (built_jar().parent / "jars").glob("spark-sql_*-tests.jar")
    return jar


class SuiteJvm:
    """One JVM in a folder of its own, where the suites also keep their files.

    Args:
        folder: folder that is emptied first, and holds the logs afterwards.
        suites: suites to run in sequence; they must be able to share a JVM.
        provider: the provider under test.
        tests: names of the tests to run; empty for all.
        local_commands: whether Hadoop's local file system may avoid processes, which halves the duration.
        planned: folder for what each new query has when it is planned as well, and when it runs; None to plan none.
    """

    def __init__(
        self,
        folder: Path,
        suites: Sequence[Suite],
        provider: ProviderUnderTest,
        tests: Sequence[str] = (),
        *,
        local_commands: bool = True,
        planned: Path | None = None,
    ) -> None:
        self._folder = folder
        self._suites = suites
        self._events = folder / "events.jsonl"
        self._scratch = folder / "scratch"
        arguments = ["-oW", "-C", f"{PACKAGE}.EventReporter"]
        arguments += [argument for suite in suites for argument in ("-s", suite.class_name)]
        arguments += [argument for test in tests for argument in ("-t", test)]
        properties = {
            **_PROPERTIES,
            **provider.conf(),
            **suites[0].settings,
            "suites.provider": provider.class_name,
            "suites.localCommands": str(local_commands).lower(),
            "suites.events": str(self._events),
            "suites.log": str(folder / "log.txt"),
            "java.io.tmpdir": str(self._scratch / "tmp"),
            "spark.test.home": str(self._scratch / "home"),
        }
        if planned is not None:
            properties |= {"suites.planned": str(planned), "spark.sql.streaming.streamingQueryListeners": LISTENER}
        self._command = ["java", f"-javaagent:{TARGET / JAR}", *_OPTIONS, *_as_options(properties)]
        self._command += ["-cp", class_path(), "org.scalatest.tools.Runner", *arguments]

    def run(self) -> list[SuiteResult]:
        """Runs the suites. One that exceeds its limit ends the JVM, so that the suites after it never begin.

        Returns:
            A result for each suite that began, and at least one.
        """
        self._prepare()
        use_this_python()
        environment = os.environ | {"SPARK_TESTING": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
        began = time.monotonic()
        with (self._folder / "console.txt").open("wb") as console:
            process = subprocess.Popen(
                self._command,
                cwd=self._scratch,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            log, late = self._watch(process)
        finally:
            end_all(process)
            shutil.rmtree(self._scratch)
        seconds = time.monotonic() - began
        found = [log.result(s.class_name, timed_out=s.class_name == late, seconds=seconds) for s in self._suites]
        results = [result for result in found if result is not None]
        first = self._suites[0].class_name
        return results or [SuiteResult(first, End.TIMED_OUT if late else End.CRASHED, seconds, (), log.error)]

    def forget(self) -> None:
        """Deletes the logs."""
        shutil.rmtree(self._folder)

    def _prepare(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        (self._scratch / "tmp").mkdir(parents=True)
        # The suites expect their resources in Spark's source tree.
        sources = self._scratch / "home" / "sql" / "core" / "src" / "test"
        sources.mkdir(parents=True)
        (sources / "resources").symlink_to(TARGET / "resources")
        self._events.touch()

    def _watch(self, process: subprocess.Popen[bytes]) -> tuple[EventLog, str | None]:
        """Follows the events until the JVM ends or a suite exceeds its limit; returns that suite, if any."""
        limits = {suite.class_name: suite.limit for suite in self._suites}
        log, current, since, rest = EventLog(), self._suites[0].class_name, time.monotonic(), ""
        with self._events.open(encoding="utf-8") as events:
            running = True
            while running:
                running = process.poll() is None
                *lines, rest = (rest + events.read()).split("\n")
                log.add(lines)
                if log.current in limits and log.current != current:
                    current, since = log.current, time.monotonic()
                if running and time.monotonic() - since > limits[current]:
                    return log, current
                if running:
                    time.sleep(_POLL)
        return log, None


def end_all(process: subprocess.Popen[bytes]) -> None:
    """Kills a JVM, if still running, and all processes that it started or left behind."""
    below = descendants(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in below:
        kill(pid)
    process.wait()


def _as_options(properties: Mapping[str, str]) -> list[str]:
    return [f"-D{key}={value}" for key, value in properties.items()]
