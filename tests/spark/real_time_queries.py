"""Queries in real-time mode on Kafka: their topics, their drivers, and the comparison of outputs and states."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spark_ckpt import read_state
from tests.spark.jobs.real_time import FAILURES, FINISH, PARTITIONS, SCHEMA
from tests.spark.kafka_queries import answer_of_sums
from tests.support.checkpoints import CheckpointJudge, committed_batches, log_records, numbers
from tests.support.kafka import KafkaBroker
from tests.support.processes import BRIDGE, DriverJob, find_below, job_arguments, kill
from tests.support.provider import ProviderUnderTest
from tests.support.sinks import Rows, assert_same_rows
from tests.support.topics import Topic, unique_name

INTERVAL = "700 milliseconds"
"""Length of the batches, so that a test sees many of them."""

KEYS = 12

OUTPUTS = {"counts": "key string, n long, total long", "unique": SCHEMA, "settled": "key string, n long, settled long"}
"""Schema of the output by plan."""

COLUMNS = {"counts": (1, 2), "unique": (2, 0), "settled": (1, 1)}
"""Number of columns of the key and of the value, by plan. Further columns of the output are not part of the answer."""


class RealTimeQueries:
    """Queries of one test.

    Args:
        broker: the broker.
        folder: folder of the queries and of the drivers' logs.
        provider: the state-store provider.
        rng: source of the input and of the moments of kills.
        names: names of the queries; what comes before a hyphen is the plan, `counts`, `unique` or `settled`.
    """

    def __init__(
        self, broker: KafkaBroker, folder: Path, provider: ProviderUnderTest, rng: random.Random, names: Sequence[str]
    ) -> None:
        self.folder = folder
        self.names = names
        self.started: list[DriverJob] = []
        self._servers, self._provider, self._rng = broker.bootstrap_servers, provider, rng
        self._prefix = unique_name("rt")
        self._inputs = {name: self._topic(name).create(PARTITIONS) for name in names}
        for name in names:
            self._output(name).create(1)

    def send(self, rows: int = 20) -> None:
        """Appends rows to the input of each query."""
        for topic in self._inputs.values():
            topic.send([(f"k{self._rng.randrange(KEYS)}", self._rng.randrange(100)) for _ in range(rows)])

    def run_micro_batches(self) -> None:
        """Processes all input in micro-batches."""
        self._await_end(self._start())

    def start(self, *, around: bool = True, **options: object) -> DriverJob:
        """Starts a driver in real-time mode.

        Args:
            around: whether a new location begins with micro-batches, and `finish` ends with them.
            options: further options of the driver.
        """
        (self.folder / FINISH).unlink(missing_ok=True)
        return self._start(real_time=INTERVAL, around="yes" if around else "no", **options)

    def finish(self, job: DriverJob) -> None:
        """Ends a driver in the middle of a batch in real-time mode."""
        (self.folder / FINISH).touch()
        self._await_end(job)

    def await_batches(self, job: DriverJob, count: int = 2) -> None:
        """Waits until every query has committed this number of further batches."""
        # A new location begins with micro-batches.
        before = {name: max(2, len(committed_batches(self.location(name)))) for name in self.names}

        def have_committed() -> bool:
            return all(len(committed_batches(self.location(name))) >= before[name] + count for name in self.names)

        assert job.await_(have_committed), f"the driver has ended:\n{job.output()[-6000:]}"

    def kill_after_offsets(self, job: DriverJob, name: str) -> None:
        """Kills the driver as soon as a query has written the offsets of a batch, usually before the commit."""
        offsets = self.location(name) / "offsets"
        before = numbers(offsets)[-1]
        while numbers(offsets)[-1] == before:
            assert job.running(), job.output()[-6000:]
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.kill()

    def kill_at_random(self, job: DriverJob) -> None:
        """Kills the driver at a random moment of a batch."""
        time.sleep(self._rng.random() * 1.5)
        job.kill()

    def kill_coordinator(self, job: DriverJob) -> None:
        """Kills the side process at a random moment of a batch."""
        time.sleep(self._rng.random() * 1.5)
        for pid in find_below(job.pid, BRIDGE):
            kill(pid)

    def location(self, name: str) -> Path:
        """Checkpoint location of a query."""
        return self.folder / name / "checkpoint"

    def failures(self, name: str) -> list[str]:
        """Errors that have ended runs of a query."""
        file = self.folder / name / FAILURES
        return file.read_text().splitlines() if file.exists() else []

    def uncommitted(self, name: str) -> list[int]:
        """Batches with a completed checkpoint of which Spark has no commit."""
        committed = committed_batches(self.location(name))
        records = [record for record in log_records(self.location(name)) if record["kind"] == "checkpoint"]
        return sorted({record["batch_id"] for record in records} - set(committed))

    def check(self, judge: CheckpointJudge) -> None:
        """Asserts that outputs and states equal the batch answer, and that the locations are in order.

        Spark's sink for Kafka is at least once, so outputs may repeat. The state has each row exactly once.
        """
        for name in self.names:
            plan = name.partition("-")[0]
            rows = self._inputs[name].rows()
            sums = answer_of_sums((None, *row) for row in rows)
            key, values = COLUMNS[plan]
            answer = list(dict.fromkeys(rows)) if plan == "unique" else [row[: key + values] for row in sums]
            newest = {row[:key]: row[: key + values] for row in self.outputs(name)}
            assert_same_rows(list(newest.values()), answer)
            variable = "count" if plan == "settled" else None
            state = read_state(str(self.location(name)), variable=variable).to_arrow().to_pylist()
            assert_same_rows([(*row["key"].values(), *list(row["value"].values())[:values]) for row in state], answer)
            judge.check(self.location(name), orphans=True, real_time=True)

    def outputs(self, name: str) -> Rows:
        """Rows in the output topic of a query, oldest first."""
        return self._output(name).rows()

    def stop(self) -> None:
        """Kills the drivers that still run."""
        for job in self.started:
            job.kill()

    def _start(self, **options: object) -> DriverJob:
        options |= {"servers": self._servers, "prefix": self._prefix, "queries": ",".join(self.names)}
        job = DriverJob("real_time.py", self.folder, job_arguments(self._provider, **options))
        self.started.append(job)
        return job

    def _await_end(self, job: DriverJob) -> None:
        status = job.wait()
        assert status == 0, f"the driver ended with status {status}:\n{job.output()[-6000:]}"

    def _topic(self, name: str) -> Topic:
        return Topic(self._servers, SCHEMA, f"{self._prefix}-{name}")

    def _output(self, name: str) -> Topic:
        return Topic(self._servers, OUTPUTS[name.partition("-")[0]], f"{self._prefix}-{name}-out")
