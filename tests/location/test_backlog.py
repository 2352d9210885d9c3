"""Storage requests of a start, and the work that it defers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.completed import ClaimRecord, JobStatus, encode_record
from spark_ckpt.completed.base import MAX_CLAIMS
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.errors import StorageError
from spark_ckpt.messages import Operator
from spark_ckpt.storage import FileInfo, LocalStorage
from tests.completed.records import owner
from tests.support.cleaner import ImmediateCleaner
from tests.support.clocks import NoClock
from tests.support.driver import Driver, check_rows
from tests.support.invariants import assert_invariants, completed_versions

LOST, WAITING = f"ckpt/shared/delta-{'0' * 32}", f"ckpt/shared/base-{'1' * 32}"
OPERATORS = (Operator(0, "stateStoreSave", ("default",), 1, 2),)


class Rounds(LocalStorage):
    """Storage that records the rounds of requests; files read concurrently count as one round."""

    def __init__(self, location: Path) -> None:
        super().__init__(location, durable=False)
        self.rounds: list[str] = []
        self.records_read = 0

    @property
    def requests_are_slow(self) -> bool:
        return True

    @property
    def defers_deletions(self) -> bool:
        return True

    def read(self, name: str) -> bytes:
        self.rounds.append(f"read {name}")
        self.records_read += name.startswith("ckpt/completed/")
        return super().read(name)

    def read_many(self, names: Sequence[str]) -> dict[str, bytes | StorageError]:
        before = len(self.rounds)
        found = super().read_many(names)
        self.rounds[before:] = [f"read {len(names)} files"] if names else []
        return found

    def list(self, directory: str) -> Sequence[FileInfo]:
        self.rounds.append(f"list {directory}")
        return super().list(directory)

    def size(self, name: str) -> int:
        self.rounds.append(f"look at {name}")
        return super().size(name)

    def delete(self, name: str) -> bool:
        self.rounds.append(f"delete {name}")
        return super().delete(name)


class Start:
    """Driver on a location, and its deferred work."""

    def __init__(self, location: Path, retained: int) -> None:
        self.storage = Rounds(location)
        self.later: list[Callable[[], None]] = []
        environment = Environment(
            clock=NoClock(),
            open_storage=lambda trigger: self.storage,
            make_cleaner=ImmediateCleaner,
            in_background=self.later.append,
            commit_seconds=0,
        )
        settings = {"retained": str(retained), "inlineThreshold": "0"}
        self.driver = Driver(location, environment=environment, operators=OPERATORS, settings=settings)

    def trigger(self, version: int, before: Driver | None = None) -> list[str]:
        """Opens the job; returns the rounds of requests so far."""
        if before is not None:
            self.driver.rows, self.driver.ids = dict(before.rows), dict(before.ids)
        self.driver.trigger(version)
        return self.storage.rounds


def filled(location: Path, versions: int, retained: int) -> Driver:
    start = Start(location, retained)
    for version in range(1, versions + 1):
        start.driver.batch(version)
        while start.later:
            start.later.pop()()
    return start.driver


def test_a_start_waits_for_a_constant_number_of_requests_however_much_is_retained(tmp_path: Path) -> None:
    rounds = []
    for retained in (6, 60):
        location = tmp_path / str(retained)
        filled(location, retained, retained)
        rounds.append(len(Start(location, retained).trigger(retained + 1)))
    assert rounds[0] == rounds[1] < 20


def test_a_start_waits_for_a_constant_number_of_requests_however_many_have_claimed(tmp_path: Path) -> None:
    rounds = []
    for claims in (3, 300):
        location = tmp_path / str(claims)
        for i in range(1, claims + 1):  # like a release that kept all claims
            record = ClaimRecord(i, i, owner(str(i)), "attempt", 0)
            LocalStorage(location).write_atomic(f"ckpt/completed/{i:020d}.json", encode_record(record))
        Start(location, 2).trigger(1)
        start = Start(location, 2)
        rounds.append(len(start.trigger(1)))
        assert len(start.storage.list("ckpt/completed")) <= 17
    assert rounds[1] <= rounds[0] + 2, rounds  # one claim is dropped


def test_what_is_read_of_a_log_has_a_bound_however_often_a_query_was_started(tmp_path: Path) -> None:
    """A start reads each kept record once: those of the retained checkpoints, and up to `MAX_CLAIMS` claims."""
    retained, before = 5, None
    for version in range(1, 2 * MAX_CLAIMS):
        start = Start(tmp_path, retained)
        start.trigger(version, before)
        assert start.storage.records_read <= retained + 1 + MAX_CLAIMS, version
        start.driver.batch(version)
        while start.later:
            start.later.pop()()
        assert start.driver.job is not None
        start.driver.job.close(JobStatus.SUSPENDED)
        before = start.driver
    assert len(start.storage.list("ckpt/completed")) >= MAX_CLAIMS


def test_claims_of_a_release_that_kept_them_all_are_read_once(tmp_path: Path) -> None:
    for i in range(1, 301):
        record = ClaimRecord(i, i, owner(str(i)), "attempt", 0)
        LocalStorage(tmp_path).write_atomic(f"ckpt/completed/{i:020d}.json", encode_record(record))
    first, second = Start(tmp_path, 2), Start(tmp_path, 2)
    first.trigger(1)
    assert first.storage.records_read >= 300
    second.trigger(1)
    assert second.storage.records_read <= MAX_CLAIMS


def test_nothing_is_deleted_before_it_is_known_what_older_checkpoints_need(tmp_path: Path) -> None:
    before = filled(tmp_path, 6, 6)
    LocalStorage(tmp_path).write_atomic(LOST, b"x")
    start = Start(tmp_path, 2)
    start.trigger(7, before)
    start.driver.batch(7)
    assert completed_versions(tmp_path) == list(range(1, 8))
    assert not [done for done in start.storage.rounds if done.startswith("delete ckpt/shared")]
    work = start.later[0]
    work()
    start.driver.batch(8)
    start.driver.batch(9)
    assert completed_versions(tmp_path) == [7, 8, 9]
    check_rows(start.driver, start.storage, 9)
    assert start.driver.job is not None
    start.driver.job.housekeeping()
    assert not start.storage.exists(LOST)


def test_what_this_run_has_written_is_no_orphan(tmp_path: Path) -> None:
    before = filled(tmp_path, 3, 3)
    start = Start(tmp_path, 3)
    start.trigger(4, before)
    start.storage.write_atomic(WAITING, b"x")
    start.driver.batch(4)
    for work in start.later:
        work()
    start.driver.batch(5)
    assert start.storage.exists(WAITING)
    start.storage.delete(WAITING)
    assert_invariants(LocalStorage(tmp_path), orphans=True)


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_run_of_one_batch_drops_what_it_subsumes(tmp_path: Path, is_idle: bool) -> None:
    before = filled(tmp_path, 3, 3)
    start = Start(tmp_path, 2)
    start.driver.environment = replace(start.driver.environment, in_background=lambda work: work())
    start.trigger(4, before)
    assert start.driver.job is not None
    for ack in [start.driver.make_ack(key, 4) for key in start.driver.subtasks()]:
        start.driver.job.acknowledge(ack)
    if is_idle:
        start.driver.job.housekeeping()
    start.driver.job.close(JobStatus.FINISHED)
    assert completed_versions(tmp_path) == [3, 4]
