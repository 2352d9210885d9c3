"""Starts the runs, each in its own JVM, and collects their measurements."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyspark

from benchmarks.object_store import ObjectStore, s3a_jars
from benchmarks.stores import coordinator, data, job, machine
from benchmarks.stores.figures import request_samples
from benchmarks.stores.job import Order
from benchmarks.stores.plan import Run
from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.results import Record, ResultFolder
from spark_ckpt import jar_path

FLOOR_JAR = machine.REPOSITORY / "jvm-shim" / "benchmark" / "target" / "spark-ckpt-benchmark.jar"

CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.openCostInBytes": "512k",  # all cores read a file of many rows, a single core reads one of few
    "spark.sql.streaming.fileSource.log.compactInterval": "1000",  # otherwise every tenth batch takes longer
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",  # short runs include background work as well
}
"""Settings common to all providers."""


class RunFailedError(RuntimeError):
    """A run ended without figures. The message names its log and shows the end of it."""


class Runner:
    """Executes runs one at a time.

    Args:
        results: folder for logs.
        work: folder for input, which is kept, and for the files of a run, which are deleted.
        heap: heap size of the driver's JVM in Java's notation; all of it is resident from the start.
        seed: seed of the input.
    """

    def __init__(self, results: ResultFolder, work: Path, heap: str, seed: int) -> None:
        self._results = results
        self._work = work
        self._heap = heap
        self._seed = seed

    def run(self, run: Run) -> Record:
        """Executes one run.

        Raises:
            RunFailedError: the run ended without figures.
        """
        load = machine.load()
        folder = self._work / run.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        measured = self._coordinator(run, folder) if run.workload.kind == "coordinator" else self._spark(run, folder)
        shutil.rmtree(folder)
        setting = {**machine.facts(), "heap": self._heap, "seed": self._seed}
        return Record(run, measured["samples"], measured["rows"], load, setting)

    def _coordinator(self, run: Run, folder: Path) -> dict[str, Any]:
        order = Order(run.workload, feed="", work="", location=str(folder / "checkpoint"))
        return self._measure(run, [sys.executable, "-m", coordinator.__name__], order, folder / "result.json")

    def _spark(self, run: Run, folder: Path) -> dict[str, Any]:
        latency = run.workload.latency_ms
        feed = data.prepare(self._work / "input", run.workload, self._seed)
        partitions = {"spark.sql.shuffle.partitions": str(run.workload.partitions)}
        conf = {**CONF, **partitions, **PROVIDERS[run.provider].conf(run.workload.memory_mb)}
        jars = [jar_path(), FLOOR_JAR]
        location = (folder / "checkpoint").as_uri()
        with ExitStack() as stack:
            store = None
            if latency is not None:
                store = stack.enter_context(ObjectStore(latency))
                conf |= store.conf()
                jars += sorted(s3a_jars().glob("*.jar"))
                location = store.location(run.name)
            order = Order(run.workload, str(feed), str(folder / "feed"), location)
            command = spark_submit(job.__file__, conf, jars, self._heap, folder)
            measured = self._measure(run, command, order, folder / "result.json")
            if run.workload.kind == "short":
                again = self._measure(run, command, replace(order, is_restart=True), folder / "restarted.json")
                measured["samples"] |= again["samples"]
            if store is not None:
                window = measured["began"], measured["ended"], measured["batches"]
                measured["samples"] |= request_samples(store.requests.noted, *window)
        return measured

    def _measure(self, run: Run, command: Sequence[str], order: Order, result: Path) -> dict[str, Any]:
        log = self._results.log(run)
        run_logged([*command, json.dumps(asdict(order)), str(result)], log)
        if not result.exists():
            raise RunFailedError(f"{run.name} produced no figures; {end_of(log)}")
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return found


def spark_submit(program: str, conf: Mapping[str, str], jars: Sequence[Path], heap: str, folder: Path) -> Sequence[str]:
    """Command that starts a Python program with Spark on all cores, without the program's arguments.

    Args:
        program: path of the program.
        conf: settings.
        jars: jars on the class path.
        heap: heap size of the driver's JVM in Java's notation; all of it is resident from the start.
        folder: folder for Spark's scratch files.
    """
    settings = {**conf, "spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder)}
    return [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", f"local[{os.cpu_count()}]"),
        *("--driver-memory", heap),
        *("--driver-java-options", f"-Xms{heap} -XX:+AlwaysPreTouch"),
        *("--jars", ",".join(map(str, jars))),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        program,
    ]


def run_logged(command: Sequence[str], log: Path) -> None:
    """Runs a command to its end, whatever its status; its output goes to the log."""
    with log.open("wb") as output:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(),
            cwd=machine.REPOSITORY,
        )


def end_of(log: Path) -> str:
    """The last lines of a log, under its name."""
    return f"end of {log}:\n" + "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])


def environment() -> Mapping[str, str]:
    """Environment of the job and the coordinator: this Python, this repository, and PySpark's Spark."""
    path = os.pathsep.join(filter(None, [str(machine.REPOSITORY), os.environ.get("PYTHONPATH")]))
    ours = {
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    return {**os.environ, **ours}
