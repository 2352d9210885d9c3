"""Runs of the benchmark: a driver process, the rows that it gets meanwhile, and their latencies."""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.real_time import job
from benchmarks.real_time.feed import Feed, Results, create
from benchmarks.real_time.job import FINISH, PROGRESS, READY, Order
from benchmarks.real_time.latency import Batch, LostRowError, pair_counts, pair_unique, pauses, samples_of
from benchmarks.stores import machine
from benchmarks.stores.driver import Driver
from benchmarks.stores.plan import Run
from benchmarks.stores.providers import OURS
from benchmarks.stores.results import Record, ResultFolder
from benchmarks.stores.workloads import Workload

PROVIDERS = (OURS.name, "rocksdb", "rocksdb-changelog")
"""Providers that can take part: RocksDB is the only one of Spark's own that real-time mode permits."""

PARTITIONS = 2
"""Partitions of the input and of the state."""

_QUERIES: tuple[Literal["count", "dedup"], ...] = ("count", "dedup")
_TITLES = {"count": "count per key", "dedup": "dropDuplicates, every tenth row sent twice"}
_REPEAT = {"count": 0, "dedup": 10}
_PAIR = {"count": pair_counts, "dedup": pair_unique}


@dataclass(frozen=True)
class Load:
    """The rows of a run.

    Args:
        seconds: time of measurement.
        warm_up: seconds before it, in real-time mode as well.
        rate: rows per second.
        keys: number of keys.
        interval_ms: length of a batch.
    """

    seconds: float
    warm_up: float
    rate: float
    keys: int
    interval_ms: int

    @property
    def first(self) -> int:
        """Number of the first measured row. Before the warm-up, a micro-batch reads a row of each key."""
        return self.keys + round(self.warm_up * self.rate)

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return self.first + round(self.seconds * self.rate)


def workloads(load: Load) -> Iterator[Workload]:
    """A count and a de-duplication; the title tells apart runs with other rows."""
    for query in _QUERIES:
        rows = f"{load.keys:,} keys, {load.rate:g} rows/s for {load.seconds:g} s after {load.warm_up:g} s"
        yield Workload(
            f"latency-{query}",
            f"{_TITLES[query]}, {rows}, batches of {load.interval_ms:,} ms",
            query=query,
            keys=load.keys,
            changed=load.keys,
            partitions=PARTITIONS,
            providers=PROVIDERS,
        )


class LatencyRunner:
    """Executes runs one at a time, each in its own driver.

    Args:
        results: folder for logs.
        work: folder for the files of a run, which are deleted after it.
        servers: address of the broker.
        load: the rows.
        heap: heap size of the driver in Java's notation.
    """

    def __init__(self, results: ResultFolder, work: Path, servers: str, load: Load, heap: str) -> None:
        self._results = results
        self._work = work
        self._servers = servers
        self._load = load
        self._heap = heap

    def run(self, run: Run) -> Record:
        """Executes one run.

        Raises:
            RunFailedError: the driver ended early, or the query processes nothing.
            LostRowError: output or state lack rows, or have some twice.
        """
        load = machine.load()
        folder = self._work / run.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        query, topic = run.workload.query, f"{run.name}-{uuid.uuid4().hex[:8]}"
        pair = _PAIR[query]
        order = Order(
            *(run.provider, query, self._servers, topic, f"{topic}-out", str(folder)),
            *(PARTITIONS, self._load.interval_ms, self._heap),
        )
        create(self._servers, order.source, PARTITIONS)
        create(self._servers, order.sink, 1)
        with (
            closing(Feed(self._servers, order.source, PARTITIONS, self._load.keys, _REPEAT[query])) as feed,
            closing(Results(self._servers, order.sink)) as results,
        ):
            feed.send(self._load.keys)
            with self._driver(run, order) as driver:
                driver.await_((folder / READY).exists, "starts real-time mode")
                feed.send(self._load.rows - self._load.keys, self._load.rate)

                def has_all() -> bool:
                    results.poll()
                    return len(pair(feed.sent, results.outputs)) == self._load.rows

                driver.await_(has_all, "has an output for each row")
                (folder / FINISH).touch()
                driver.await_((folder / PROGRESS).exists, "writes its reports")
                driver.await_(lambda: not driver.running(), "ends")
            results.drain()
            written = pair(feed.sent, results.outputs)
        batches = [Batch.of(report) for report in json.loads((folder / PROGRESS).read_text(encoding="utf-8"))]
        if batches[-1].rows != (expected := self._rows_of_state(query)):
            raise LostRowError(f"{run.name}: {batches[-1].rows} rows of state instead of {expected}")
        breaks = pauses(batches, self._load.interval_ms, written.values())
        samples = samples_of(feed.sent, written, breaks, self._load.first)
        shutil.rmtree(folder)
        return Record(run, samples, batches[-1].rows, load, {**machine.facts(), "heap": self._heap})

    def _rows_of_state(self, query: str) -> int:
        return self._load.keys if query == "count" else self._load.rows

    @contextmanager
    def _driver(self, run: Run, order: Order) -> Iterator[Driver]:
        command = [sys.executable, "-m", job.__name__, json.dumps(asdict(order))]
        driver = Driver(run.name, command, self._results.log(run))
        try:
            yield driver
        finally:
            driver.kill()
