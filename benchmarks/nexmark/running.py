"""Starts the JVM of each query by spark-submit, and collects the measurements of its runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.nexmark import job
from benchmarks.nexmark.feeds import PARTITIONS as TOPIC_PARTITIONS
from benchmarks.nexmark.generator import Stream, prepare
from benchmarks.nexmark.job import Order
from benchmarks.nexmark.plan import BATCH, COMPETITORS, DISK, Record, Results, Run
from benchmarks.nexmark.process_tree import busy_cores
from benchmarks.stores import machine
from benchmarks.stores.providers import OURS
from benchmarks.stores.runner import CONF, FLOOR_JAR, RunFailedError, end_of, run_logged, spark_submit
from spark_ckpt import jar_path
from spark_ckpt.config import EXTENSIONS_CLASS, EXTENSIONS_KEY
from tests.support.kafka import KafkaBroker, connector_jars
from tests.support.topics import Topic

PARTITIONS = 4
"""Partitions of the stateful stages."""

APPLICATION = {
    **CONF,
    EXTENSIONS_KEY: EXTENSIONS_CLASS,  # belongs to the application, so the others have it as well
    "spark.sql.shuffle.partitions": str(PARTITIONS),
}
"""Settings of the application, whichever provider runs."""

_LOOK_SECONDS = 2.0
_BUSY = "while True: pass"


@dataclass(frozen=True)
class Setting:
    """What all runs share.

    Args:
        stream: the events.
        warmups: batches before the measured ones.
        measured: measured batches.
        heap: heap of the JVM in Java's notation; all of it is resident from the start.
        busy: processes that keep a core busy meanwhile.
        kafka: true if the events come from a topic, false if they come from files.
    """

    stream: Stream
    warmups: int
    measured: int
    heap: str
    busy: int = 0
    kafka: bool = False


class Runner:
    """Executes the runs of a query, one at a time.

    Args:
        results: folder for logs.
        work: folder for input, which is kept, and for the files of a run, which are deleted.
        setting: what all runs share.
    """

    def __init__(self, results: Results, work: Path, setting: Setting) -> None:
        self._results = results
        self._work = work
        self._setting = setting

    def run(self, query: str, runs: Sequence[Run]) -> Iterator[Record]:
        """Executes the runs of a query in one JVM; yields the records of those that count.

        Raises:
            RunFailedError: the JVM ended before the last run.
        """
        setting, load = self._setting, round(busy_cores(_LOOK_SECONDS), 2)
        folder = self._work / query
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        feed = prepare(self._work / "input", setting.stream)
        order = Order(
            query,
            str(feed),
            str(folder),
            setting.stream.events,
            setting.warmups,
            setting.measured,
            [(run.round, run.provider) for run in runs],
            {run.provider: _settings(run.provider) for run in runs if run.provider != BATCH},
            OURS.name,
        )
        lines = folder / "results.jsonl"
        with ExitStack() as stack:
            jars = [jar_path(), FLOOR_JAR]
            if setting.kafka:
                broker = stack.enter_context(KafkaBroker(folder / "broker"))
                order = replace(order, kafka=broker.bootstrap_servers)
                for name in (query, *(order.name_of(*run) for run in order.runs)):
                    Topic(broker.bootstrap_servers, "", name).create(TOPIC_PARTITIONS)
                jars += connector_jars()
            stack.enter_context(_others(setting.busy))
            self._submit(order, lines, folder, jars)
        found = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()] if lines.exists() else []
        heap, stream, busy = setting.heap, setting.stream.name, setting.busy
        source = "kafka" if setting.kafka else "files"
        facts = {**machine.facts(), "heap": heap, "stream": stream, "busy": busy, "feed": source}
        for one in found:
            run = Run(query, one["provider"], one["round"])
            yield Record(run, one["samples"], one["rows"], one["answer"], load, facts)
        if len(found) < sum(run.round != job.WARM_UP for run in runs):
            raise RunFailedError(f"{query}: the JVM ended early; {end_of(self._results.log(query))}")
        shutil.rmtree(folder)

    def _submit(self, order: Order, results: Path, folder: Path, jars: Sequence[Path]) -> None:
        command = spark_submit(job.__file__, APPLICATION, jars, self._setting.heap, folder)
        run_logged([*command, json.dumps(asdict(order)), str(results)], self._results.log(order.query))


def _settings(provider: str) -> dict[str, str]:
    """Settings of a session; the memory limit, if any, is filled in by the job."""
    found = COMPETITORS[provider]
    limits = found.memory if provider == DISK.name else {}
    return {**found.conf(), **limits}


@contextmanager
def _others(count: int) -> Iterator[None]:
    """Processes that use one core each."""
    processes = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
