from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.completed import (
    CheckpointRecord,
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    JobStatus,
    Scan,
    StandaloneCompletedCheckpointStore,
    decode_record,
    encode_record,
)
from spark_ckpt.completed.errors import FencedError, StoreMismatchError
from spark_ckpt.completed.process_claims import ProcessClaims
from spark_ckpt.errors import DamagedCheckpointError
from spark_ckpt.storage import LocalStorage
from tests.completed.contract import CompletedCheckpointStoreContract
from tests.completed.records import add, owner, record
from tests.support.clocks import NoClock
from tests.support.waiting import PATIENCE


class TestStandaloneStore(CompletedCheckpointStoreContract):
    """Records stand in for `_metadata` files; tests/location/test_listing.py reads real ones."""

    @pytest.fixture(autouse=True)
    def _location(self, tmp_path: Path) -> None:
        self.storage = LocalStorage(tmp_path)

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        return StandaloneCompletedCheckpointStore(self.storage, self.scan, owner(name), NoClock())

    def add(self, store: CompletedCheckpointStore, version: int) -> CheckpointRecord:
        added = add(store, version)
        self.storage.write_atomic(f"ckpt/{added.metadata.path}", encode_record(added))
        return added

    def scan(self) -> Scan:
        records = tuple(self.records())
        return Scan(records, next_id=1 + max((record.id for record in records), default=0))

    def records(self) -> Iterator[CheckpointRecord]:
        for checkpoint_id in sorted(int(entry.name[4:]) for entry in self.storage.list("ckpt")):
            name = f"ckpt/chk-{checkpoint_id}/_metadata"
            if self.storage.exists(name):
                found = decode_record(self.storage.read(name), name, checkpoint_id)
                assert isinstance(found, CheckpointRecord)
                yield found


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def test_says_that_it_has_no_fence(storage: LocalStorage, caplog: pytest.LogCaptureFixture) -> None:
    store = StandaloneCompletedCheckpointStore(storage, Scan, owner())
    store.recover()
    with caplog.at_level(logging.WARNING):
        store.claim()
    assert "does not fence" in caplog.text
    assert storage.location in caplog.text
    assert not store.fences
    assert FilesystemCompletedCheckpointStore.fences


def test_what_is_damaged_is_left_aside_and_reported(storage: LocalStorage, caplog: pytest.LogCaptureFixture) -> None:
    damaged = DamagedCheckpointError("chk-7/_metadata", 7, "cut off", None, "")
    whole = replace(record(4, 3), generation=0)
    store = StandaloneCompletedCheckpointStore(storage, lambda: Scan((whole,), (damaged,), 8), owner(), NoClock())
    with caplog.at_level(logging.WARNING):
        store.recover()
    assert store.all() == [whole]
    assert store.damaged == (damaged,)
    assert "chk-7/_metadata: cut off" in caplog.text
    store.claim()
    assert add(store, 4).id == 9  # ids of damaged checkpoints are not reused


def test_a_log_of_another_store_is_not_left_to_age(storage: LocalStorage) -> None:
    log = FilesystemCompletedCheckpointStore(storage, owner(), clock=NoClock())
    log.recover()
    log.claim()
    with pytest.raises(StoreMismatchError, match="1 records of completed checkpoints") as caught:
        StandaloneCompletedCheckpointStore(storage, Scan, owner()).recover()
    assert caught.value.path == storage.describe("ckpt/completed")


class TestRunsOfOneDriver:
    """The coordinator learns of the end of a run only after the next run has begun."""

    @pytest.fixture
    def claims(self) -> ProcessClaims:
        return ProcessClaims()

    @pytest.fixture
    def runs(
        self, storage: LocalStorage, claims: ProcessClaims
    ) -> tuple[StandaloneCompletedCheckpointStore, StandaloneCompletedCheckpointStore]:
        location = TestStandaloneStore()
        location.storage = storage
        first, second = (
            StandaloneCompletedCheckpointStore(storage, location.scan, owner(name), NoClock(), claims) for name in "ab"
        )
        first.recover()
        first.claim()
        location.add(first, 1)
        return first, second

    def test_the_run_before_can_drop_nothing_more(
        self, runs: tuple[StandaloneCompletedCheckpointStore, StandaloneCompletedCheckpointStore], storage: LocalStorage
    ) -> None:
        first, second = runs
        second.recover()
        second.claim()
        (checkpoint,) = first.all()
        with pytest.raises(FencedError, match="run run-b of the same driver") as caught:
            first.subsume(checkpoint)
        assert (caught.value.path, caught.value.owner_generation) == (storage.location, second.generation)
        with pytest.raises(FencedError):
            first.check_owner()
        with pytest.raises(FencedError):
            add(first, 2)
        assert storage.exists(f"ckpt/{checkpoint.metadata.path}")
        second.check_owner()
        second.subsume(checkpoint)

    def test_what_the_run_before_has_dropped_since_is_not_there(
        self, runs: tuple[StandaloneCompletedCheckpointStore, StandaloneCompletedCheckpointStore]
    ) -> None:
        first, second = runs
        second.recover()
        assert len(second.all()) == 1
        first.subsume(first.all()[0])
        first.shutdown(JobStatus.FINISHED)
        second.claim()
        assert second.all() == []

    def test_a_claim_waits_for_a_deletion(
        self,
        runs: tuple[StandaloneCompletedCheckpointStore, StandaloneCompletedCheckpointStore],
        storage: LocalStorage,
        claims: ProcessClaims,
    ) -> None:
        first, second = runs
        second.recover()
        assert claims.begin_deleting(storage.location, "run-a") is None
        claiming = threading.Thread(target=second.claim)
        claiming.start()
        first.check_owner()
        first.subsume(first.all()[0])  # also ends the deletion
        claiming.join(PATIENCE)
        assert not claiming.is_alive()
        assert second.all() == []
        with pytest.raises(FencedError):
            first.check_owner()

    def test_a_run_that_has_ended_leaves_the_location_to_the_one_before(
        self, runs: tuple[StandaloneCompletedCheckpointStore, StandaloneCompletedCheckpointStore]
    ) -> None:
        first, second = runs
        second.recover()
        second.claim()
        second.shutdown(JobStatus.FAILED)
        first.subsume(first.all()[0])
        assert first.all() == []

    def test_an_id_that_was_tried_is_not_used_again(
        self, runs: tuple[StandaloneCompletedCheckpointStore, StandaloneCompletedCheckpointStore]
    ) -> None:
        """The previous run has named files after its next checkpoint id, and may still be deleting them."""
        first, second = runs
        tried = first.counter.get()
        second.recover()
        assert second.claim().id == tried + 1
        assert add(second, 2).id == tried + 2

    def test_ids_have_no_gaps_where_nothing_failed(
        self, runs: tuple[StandaloneCompletedCheckpointStore, StandaloneCompletedCheckpointStore]
    ) -> None:
        first, second = runs
        last = first.all()[-1].id
        first.shutdown(JobStatus.FINISHED)
        second.recover()
        assert second.claim().id == last + 1


def test_tried_ids_are_kept_of_the_last_locations_only() -> None:
    claims = ProcessClaims()
    for number in range(1_001):
        claims.tried(f"location-{number}", 7)
    assert [claims.free_id(f"location-{number}") for number in (0, 1, 1_000)] == [1, 8, 8]
