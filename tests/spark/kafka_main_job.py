"""The main job on Kafka under failures: its topics, its drivers, and the comparison of all results."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.spark_files.source_positions import KafkaPosition, positions_of
from spark_ckpt.storage import LocalStorage
from tests.spark import kafka_queries
from tests.spark.jobs.kafka_main import FINISH, QUERIES
from tests.support.checkpoints import committed_batches, numbers
from tests.support.events import SCHEMA, Event, end, without_end
from tests.support.jobs import with_duplicates
from tests.support.kafka import KafkaBroker
from tests.support.processes import DriverJob, job_arguments
from tests.support.provider import ProviderUnderTest
from tests.support.sinks import Rows, assert_same_rows
from tests.support.topics import Topic, unique_name

RESULTS = {
    "windows": "key string, start long, n long, total long",
    "unique": "key string, ms long, value long, batch long",
    "sums": "key string, n long, total long",
}
"""Columns of the topics with results, by query."""


class KafkaMainJob:
    """Runs the main job on topics of its own.

    Args:
        broker: the broker, which may be taken away while the job runs.
        folder: folder of the checkpoint locations, the Delta table and the logs.
        provider: the state-store provider of the drivers.
        rng: source of the events and of the moments of kills.
        chunks: number of chunks of events, each 20 seconds of event time.
    """

    def __init__(
        self, broker: KafkaBroker, folder: Path, provider: ProviderUnderTest, rng: random.Random, chunks: int
    ) -> None:
        self.broker = broker
        self.folder = folder
        self.started: list[DriverJob] = []
        self._provider = provider
        self._rng = rng
        self._prefix = unique_name("main")
        self._chunks = [self._events(chunks), self._events(chunks)]
        self._sent = 0
        self.inputs = [self._topic(name, SCHEMA).create(2) for name in ("left", "right")]
        self.results = {name: self._topic(name, schema).create(2) for name, schema in RESULTS.items()}

    @property
    def chunks_left(self) -> int:
        """Number of chunks that are not in the topics yet."""
        return len(self._chunks[0]) - self._sent

    def start(self) -> DriverJob:
        """Starts a driver, in addition to those that run."""
        options = job_arguments(self._provider, servers=self.broker.bootstrap_servers, prefix=self._prefix)
        job = DriverJob("kafka_main.py", self.folder, options)
        self.started.append(job)
        return job

    def send(self, chunks: int = 1) -> None:
        """Appends the next chunks of events to both topics.

        With more than four unread chunks, rows could be late: queries read the partitions of a topic side by side, but
        not in step.
        """
        for _ in range(min(chunks, self.chunks_left)):
            for topic, queue in zip(self.inputs, self._chunks, strict=True):
                topic.send(queue[self._sent])
            self._sent += 1

    def await_read(self, job: DriverJob, records: int = 0) -> None:
        """Waits until every query has at most this number of records of each topic left to read."""
        ends = {topic.name: topic.end_offsets() for topic in self.inputs}

        def has_read() -> bool:
            return all(self._unread(query, ends) <= records for query in QUERIES)

        assert job.await_(has_read), f"the driver has ended:\n{job.output()[-6000:]}"

    def await_batch(self, job: DriverJob) -> list[str]:
        """Waits for a random moment of a batch, and returns the queries with a running batch."""
        while True:
            assert job.await_(lambda: bool(self.interrupted())), f"no batch runs:\n{job.output()[-6000:]}"
            time.sleep(self._rng.random() * 0.5)
            if running := self.interrupted():
                return running

    def kill_in_a_batch(self, job: DriverJob) -> list[str]:
        """Kills the driver with SIGKILL while a batch runs, and returns the queries whose batch it has interrupted."""
        self.await_batch(job)
        job.kill()
        return self.interrupted()

    def interrupted(self) -> list[str]:
        """Queries with a planned batch that is not committed."""
        return [
            query
            for query in QUERIES
            if _last(self.location(query), "offsets") > _last(self.location(query), "commits")
        ]

    def location(self, query: str) -> Path:
        """Checkpoint location of a query."""
        return self.folder / "checkpoints" / query

    def finish(self, job: DriverJob, judge: Callable[[Path], None]) -> None:
        """Lets the driver process all input and end; judges the results and the checkpoint locations."""
        assert not self.chunks_left, f"{self.chunks_left} chunks were not sent"
        self.await_read(job)
        for topic in self.inputs:
            topic.send(end(), [0])
        (self.folder / FINISH).touch()
        status = job.wait()
        assert status == 0, f"the driver ended with status {status}:\n{job.output()[-6000:]}"
        self.check_results()
        for query in QUERIES:
            judge(self.location(query))

    def check_results(self) -> None:
        """Asserts that each result equals the batch answer over the records of the topics."""
        left, right = (topic.rows() for topic in self.inputs)
        # The Kafka sink is at least once: a batch that ran again has written its records again.
        windows = list(dict.fromkeys(self.results["windows"].rows()))
        assert_same_rows(windows, kafka_queries.answer_of_windows(left))
        newest = {row[0]: row for row in self.results["sums"].rows()}
        assert_same_rows(list(newest.values()), kafka_queries.answer_of_sums(right))
        # Records of a batch that ran again have the same batch id: each row may be there in one batch only.
        unique = [row[:-1] for row in dict.fromkeys(self.results["unique"].rows())]
        assert_same_rows(without_end(unique), kafka_queries.answer_of_unique(left))
        assert_same_rows(without_end(read_delta(self.folder / "pairs")), kafka_queries.answer_of_pairs(left, right))

    def stop(self) -> None:
        """Kills the drivers that still run."""
        for job in self.started:
            job.kill()

    def _events(self, chunks: int) -> list[list[Event]]:
        """Chunks of events with few keys, and with repetitions in the same chunk and the next one."""
        return with_duplicates(self._rng, chunks)

    def _topic(self, name: str, schema: str) -> Topic:
        return Topic(self.broker.bootstrap_servers, schema, f"{self._prefix}-{name}")

    def _unread(self, query: str, ends: Mapping[str, Mapping[int, int]]) -> int:
        """Number of records that the query's committed batches have not read, of the topics that it reads."""
        committed = committed_batches(self.location(query))
        if not committed:
            return sum(ends[self.inputs[0].name].values())
        with suppress(StateFileNotFoundError):  # a running query removes old entries
            entry = SparkLog(LocalStorage(self.location(query))).offsets(committed[-1])
            read = [p for text in entry.offsets.values() if text for p in positions_of(text)]
            positions = {(p.topic, p.partition): p.offset for p in read if isinstance(p, KafkaPosition)}
            return sum(
                end - positions.get((topic, partition), 0)
                for topic in {topic for topic, _ in positions}
                for partition, end in ends[topic].items()
            )
        return self._unread(query, ends)


def read_delta(table: Path) -> Rows:
    """Rows of a Delta table, by the JSON entries of its log."""
    files: set[str] = set()
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, entry.read_text().splitlines()):
            if "add" in action:
                files.add(action["add"]["path"])
            if "remove" in action:
                files.remove(action["remove"]["path"])
    return [tuple(row.values()) for name in sorted(files) for row in pq.read_table(table / name).to_pylist()]


def _last(location: Path, log: str) -> int:
    return max(numbers(location / log), default=-1)
