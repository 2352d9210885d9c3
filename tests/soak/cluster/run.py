"""One run: a driver with several queries on a cluster, disturbed again and again, and judged after each disturbance."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_ckpt import config
from tests.soak.cluster.executors import background_work
from tests.soak.cluster.judge import Heap, judge_cluster, judge_files
from tests.soak.cluster.queries import DelayedJoin, LargeCount, SoakQuery, Windows
from tests.support.class_archive import quick_start
from tests.support.processes import kill
from tests.support.provider import CKPT
from tests.support.session import open_session
from tests.support.standalone_cluster import StandaloneCluster
from tests.support.waiting import eventually

PATIENCE = 900.0
"""Timeout in seconds that only a hang exceeds."""

MAX_WORKERS = 3

UNLOAD_SECONDS = 10.0
"""Time in which executors without work unload their stores: some intervals of Spark's maintenance."""

BACKGROUND_WORK = (frozenset({"merge", "heavy-merge"}), frozenset({"base-snapshot"}))

MEETING_SECONDS = 30.0
"""Longest wait for background work before a stop, which then comes without it."""

IDLE = "10000 days"
"""Interval of a run that makes one batch and then waits."""


@dataclass(frozen=True)
class Scale:
    """Size of a run.

    Args:
        keys: keys of the large count.
        rows: rows of a batch of the large count.
        other_rows: rows of a batch and source of the other queries.
        width: bytes of a value of the large count.
        budget: memory budget of an executor (`memory.budget`).
        memory: heap of an executor, as Spark writes it.
        max_deltas: `chain.maxDeltas`.
        settle_every: number of disturbances between two looks at the heap.
    """

    keys: int
    rows: int
    other_rows: int
    width: int
    budget: str
    memory: str
    max_deltas: int
    settle_every: int


@dataclass
class Tally:
    """Counts of what happened, and the violations found."""

    disturbances: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    """Background work in progress at a stop, by kind, or `nothing`."""
    kills: int = 0
    settled: int = 0
    rows: int = 0
    violations: list[str] = field(default_factory=list)


class ClusterSoak:
    """Queries of two root sessions in one driver. It disturbs them, and judges what the cluster makes of it.

    Args:
        work: an empty folder.
        cluster: the running cluster.
        scale: size of the run.
        rng: source of the disturbances.
        say: prints a line.
        calm: context in which background work of the executors is as quick as it can be.
    """

    def __init__(
        self,
        work: Path,
        cluster: StandaloneCluster,
        scale: Scale,
        rng: random.Random,
        say: Callable[[str], None],
        calm: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.tally = Tally()
        self._work, self._cluster, self._scale, self._rng, self._say = work, cluster, scale, rng, say
        self._calm = calm
        queries = work / "queries"
        self._count = LargeCount(queries, scale.rows, scale.keys, scale.width)
        self.queries: Sequence[SoakQuery] = (
            self._count,
            Windows(queries, scale.other_rows, scale.keys),
            DelayedJoin(queries, scale.other_rows),
        )
        self._spark = self._open_driver()
        self._sessions = {query.name: self._spark for query in self.queries}
        self._sessions["windows"] = _root_session(self._spark)
        self._running: dict[str, StreamingQuery] = {}
        self._heap = Heap(cluster)
        self._deck: list[tuple[str, Callable[[], None]]] = []

    def run(self, continues: Callable[[int], bool]) -> Tally:
        """Disturbs the queries while `continues` is true of the number of disturbances, then checks every row."""
        self._warm_up()
        self._start_all()
        self._await_loaded()
        while continues(self.tally.disturbances.total()) and not self.tally.violations:
            name, disturb = self._next_disturbance()
            self._say(f"{self.tally.disturbances.total() + 1}: {name}, {self._progress()}")
            disturb()
            self.tally.disturbances[name] += 1
            self._await_batches(2)
            self._judge_cluster()
            if self.tally.disturbances.total() % self._scale.settle_every == 0:
                self._settle()
        self._stop_all()
        self._judge_answers()
        self._judge_cluster()
        return self.tally

    def close(self) -> None:
        """Ends the driver."""
        self._spark.stop()

    # Disturbances

    def _next_disturbance(self) -> tuple[str, Callable[[], None]]:
        """Each kind comes once in random order, then each comes again."""
        if not self._deck:
            self._deck = list(self._disturbances())
            self._rng.shuffle(self._deck)
        return self._deck.pop()

    def _disturbances(self) -> Iterator[tuple[str, Callable[[], None]]]:
        yield "stop of all queries amid background work", self._restart_all
        yield "stop of one query amid background work", self._restart_one
        yield "kill of an executor", self._kill_executor
        if len(self._cluster.workers) < MAX_WORKERS:
            yield "one more worker", self._add_worker

    def _restart_all(self) -> None:
        self._meet_background_work()
        self._stop_all()
        self._start_all()

    def _restart_one(self) -> None:
        self._meet_background_work()
        query = self._rng.choice([self._count, *self.queries])
        self._stop(query)
        # At once, or after the executors have unloaded its stores.
        time.sleep(self._rng.choice([0, UNLOAD_SECONDS]))
        self._start(query)

    def _kill_executor(self) -> None:
        executors = self._cluster.executors()
        victim = self._rng.choice(executors)
        self.tally.kills += 1
        kill(victim)
        self._await_executors(victim)

    def _add_worker(self) -> None:
        before = len(self._cluster.executors())
        self._cluster.add_worker()
        eventually(
            lambda: len(self._cluster.executors()) > before, PATIENCE, "the new worker has an executor", poll=0.5
        )

    def _meet_background_work(self) -> None:
        """Waits some time until an executor merges deltas or, half of the times, writes a base."""
        wanted = self._rng.choice(BACKGROUND_WORK)

        def look() -> frozenset[str]:
            self._raise_failures()
            executors = self._cluster.executors()
            return wanted & background_work(self._rng.choice(executors)) if executors else frozenset()

        try:
            self.tally.met.update(eventually(look, MEETING_SECONDS))
        except TimeoutError:
            self.tally.met["nothing"] += 1

    # Queries

    def _open_driver(self) -> SparkSession:
        gigabyte = {
            "spark.executor.memory": self._scale.memory,
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": quick_start(),
            "spark.driver.memory": "2g",
        }
        moving = {
            # Tasks go wherever a core is free, so that partitions move between executors all the time.
            "spark.locality.wait": "0s",
            "spark.task.maxFailures": "8",
            "spark.stage.maxConsecutiveAttempts": "20",
        }
        ours = {
            config.RETAINED.key: "2",
            config.MAX_DELTAS.key: str(self._scale.max_deltas),
            config.MEMORY_BUDGET.key: self._scale.budget,
            # Merges and bases take longer, so that more stops meet one.
            config.COMPRESSION.key: "zstd",
        }
        conf = {**gigabyte, **moving, **ours, "spark.sql.shuffle.partitions": "2"}
        spark = open_session(CKPT, self._work, master=self._cluster.url, conf=conf)
        spark.sparkContext.setLogLevel("WARN")
        return spark

    def _start(self, query: SoakQuery, interval: str = "0 seconds") -> None:
        self._running[query.name] = query.start(self._sessions[query.name], interval)

    def _start_all(self, interval: str = "0 seconds") -> None:
        for query in self.queries:
            self._start(query, interval)

    def _stop(self, query: SoakQuery) -> None:
        self._raise_failures()
        self._running.pop(query.name).stop()
        self.tally.violations += [
            f"{query.name}: {violation}" for violation in judge_files(query.location, self._scale.max_deltas)
        ]

    def _stop_all(self) -> None:
        for query in self.queries:
            self._stop(query)

    def _raise_failures(self) -> None:
        for running in self._running.values():
            if (error := running.exception()) is not None:
                raise error

    def _await_batches(self, count: int) -> None:
        """Waits until each query has committed that many more batches."""
        goals = {query: query.batches + count for query in self.queries}

        def done() -> bool:
            self._raise_failures()
            return all(query.batches >= goal for query, goal in goals.items())

        eventually(done, PATIENCE, lambda: f"batches are committed: {self._progress()}", poll=0.1)

    def _await_loaded(self) -> None:
        """Waits until the large count has all its keys."""
        needed = -(-self._scale.keys // self._scale.rows)
        eventually(lambda: self._count.batches >= needed, PATIENCE, self._progress, poll=0.1)

    def _await_executors(self, victim: int) -> None:
        def replaced() -> bool:
            executors = self._cluster.executors()
            return victim not in executors and len(executors) == len(self._cluster.workers)

        eventually(replaced, PATIENCE, "each worker has an executor again", poll=0.2)

    def _progress(self) -> str:
        return ", ".join(f"{query.name} {query.batches}" for query in self.queries) + " batches"

    # Judgement

    def _warm_up(self) -> None:
        """Runs each plan, and takes the heap without state as the base of later looks."""
        self._start_all()
        self._await_batches(2)
        self._stop_all()
        time.sleep(UNLOAD_SECONDS)
        self._heap.take_base()
        self._say(f"{self._heap.base >> 20} MiB live in an executor without state")

    def _settle(self) -> None:
        """Compares the live heap with what is counted: while all queries are idle, and after all have stopped."""
        self._stop_all()
        with self._calm():
            self._start_all(IDLE)
            self._await_batches(1)
            self._compare_heap(sum(map(_counted_bytes, self._running.values())), "with idle queries")
            self._stop_all()
            self._compare_heap(0, "after all queries have stopped")
        self.tally.settled += 1
        self._start_all()

    def _compare_heap(self, counted: int, when: str) -> None:
        fits, figures = self._heap.compare(counted, when)
        self._say(f"   {figures}")
        if not fits:
            self.tally.violations.append(f"heap that is not counted, {figures}")

    def _judge_cluster(self) -> None:
        self.tally.violations += judge_cluster(self._cluster, self._work / "driver.log", self.tally.kills)

    def _judge_answers(self) -> None:
        for query in self.queries:
            self.tally.rows += query.batches * query.rows
            self.tally.violations += query.check(self._spark)


def _counted_bytes(running: StreamingQuery) -> int:
    """Bytes that the stores of a run count as memory, all executors together."""
    progress = eventually(lambda: running.lastProgress, PATIENCE, "progress of the last batch")
    assert progress is not None
    return sum(operator["memoryUsedBytes"] for operator in progress["stateOperators"])


def _root_session(spark: SparkSession) -> SparkSession:
    """One more session of the application that shares nothing with the first but the context."""
    assert spark._jvm is not None
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
    return SparkSession(spark.sparkContext, sessions.builder().getOrCreate())
