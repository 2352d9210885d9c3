"""Contract tests for completed-checkpoint stores and counters (Flink: `CompletedCheckpointStoreTest`,
`CheckpointIDCounterTestBase`); one subclass per store."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

import pytest

from spark_ckpt.completed import CheckpointIDCounter, CheckpointRecord, CompletedCheckpointStore, JobStatus
from spark_ckpt.completed.errors import FencedError
from tests.completed.records import add


def discard(store: CompletedCheckpointStore) -> None:
    """Drops all checkpoints, as a query with a `cleanup` setting does at its end."""
    store.keep_counting()
    for checkpoint in store.all():
        store.subsume(checkpoint)
    store.shutdown(JobStatus.FINISHED)


class CompletedCheckpointStoreContract(ABC):
    @abstractmethod
    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        """Store of another driver on the same location, neither recovered nor claimed."""

    def add(self, store: CompletedCheckpointStore, version: int) -> CheckpointRecord:
        """Completes a checkpoint."""
        return add(store, version)

    def claimed(self, name: str = "a") -> CompletedCheckpointStore:
        store = self.open_store(name)
        store.recover()
        store.claim()
        return store

    def test_a_new_location_has_no_checkpoints(self) -> None:
        store = self.open_store()
        store.recover()
        assert store.all() == []
        assert store.latest() is None

    def test_recovering_changes_nothing(self) -> None:
        first = self.claimed()
        self.add(first, 1)
        other = self.open_store("b")
        other.recover()
        other.recover()
        self.add(first, 2)

    def test_what_was_added_is_found_again(self) -> None:
        store = self.claimed()
        added = [self.add(store, version) for version in (1, 2, 3)]
        other = self.open_store("b")
        other.recover()
        assert other.all() == added == store.all()
        assert other.latest() == added[-1]

    def test_ids_are_one_ascending_sequence_of_claims_and_checkpoints(self) -> None:
        ids = []
        for name in "abc":
            store = self.open_store(name)
            store.recover()
            ids.append(store.claim().id)
            ids += [self.add(store, version).id for version in (1, 2)]
        assert ids == list(range(ids[0], ids[0] + 9))

    def test_the_newest_is_that_with_the_highest_number(self) -> None:
        store = self.claimed()
        added = [self.add(store, version) for version in range(1, 13)]
        assert {len(str(checkpoint.id)) for checkpoint in added} == {1, 2}
        other = self.open_store("b")
        other.recover()
        assert other.latest() == added[-1]
        assert [checkpoint.id for checkpoint in other.all()] == sorted(checkpoint.id for checkpoint in added)

    def test_the_newest_of_a_version_is_found(self) -> None:
        store = self.claimed()
        self.add(store, 1)
        again = self.add(store, 1)
        self.add(store, 2)
        assert store.latest_of_version(1) == again
        assert store.latest_of_version(3) is None

    def test_what_is_subsumed_is_not_found_again(self) -> None:
        store = self.claimed()
        first, second = self.add(store, 1), self.add(store, 2)
        store.subsume(first)
        assert store.all() == [second]
        other = self.open_store("b")
        other.recover()
        assert other.all() == [second]

    def test_several_are_subsumed_at_once(self) -> None:
        store = self.claimed()
        first, second, third = (self.add(store, version) for version in (1, 2, 3))
        store.subsume(first, second)
        assert store.all() == [third]
        store.subsume(first, second)  # as after an error
        other = self.open_store("b")
        other.recover()
        assert other.all() == [third]

    def test_a_second_store_leaves_what_the_first_has(self) -> None:
        first = self.claimed("a")
        added = self.add(first, 1)
        second = self.claimed("b")
        second.shutdown(JobStatus.SUSPENDED)
        third = self.open_store("c")
        third.recover()
        assert third.all() == [added]

    @pytest.mark.parametrize("status", list(JobStatus))
    def test_shutdown_keeps_the_checkpoints(self, status: JobStatus) -> None:
        store = self.claimed()
        added = self.add(store, 1)
        store.shutdown(status)
        other = self.open_store("b")
        other.recover()
        assert other.all() == [added]

    def test_a_finished_query_may_discard(self) -> None:
        store = self.claimed()
        for version in (1, 2):
            self.add(store, version)
        discard(store)
        assert store.all() == []
        other = self.open_store("b")
        other.recover()
        assert other.all() == []

    def test_nothing_is_added_before_the_claim_or_after_the_shutdown(self) -> None:
        store = self.open_store()
        store.recover()
        with pytest.raises(RuntimeError):
            self.add(store, 1)
        store.claim()
        store.shutdown(JobStatus.FINISHED)
        with pytest.raises(RuntimeError):
            self.add(store, 1)

    def test_the_counter_names_the_next_id(self) -> None:
        store = self.claimed()
        expected = store.counter.get()
        assert self.add(store, 1).id == expected
        assert store.counter.get() == expected + 1


class FencingStoreContract(CompletedCheckpointStoreContract):
    """Additional contract of stores that fence off earlier drivers."""

    def test_each_claim_has_a_higher_generation(self) -> None:
        generations = [self.claimed(name).generation for name in "abcd"]
        assert generations == sorted(set(generations))

    def test_after_another_claim_nothing_can_be_added_any_more(self) -> None:
        first = self.claimed("a")
        kept = self.add(first, 1)
        second = self.claimed("b")
        with pytest.raises(FencedError) as caught:
            self.add(first, 2)
        assert caught.value.generation == first.generation
        assert caught.value.owner_generation == second.generation
        assert "host-b" in caught.value.owner
        assert "host-b" in str(caught.value)
        for _ in range(2):
            with pytest.raises(FencedError):
                self.add(first, 2)
        assert second.all() == [kept]
        self.add(second, 2)

    def test_after_another_claim_settling_and_asking_for_ownership_fail_too(self) -> None:
        first = self.claimed("a")
        first.check_owner()
        self.claimed("b")
        with pytest.raises(FencedError):
            first.check_owner()
        with pytest.raises(FencedError):
            first.settle()
        with pytest.raises(FencedError):
            self.add(first, 1)

    def test_a_fenced_owner_may_claim_again(self) -> None:
        first, second = self.claimed("a"), self.claimed("b")
        with pytest.raises(FencedError):
            self.add(first, 1)
        first.recover()
        first.claim()
        self.add(first, 1)
        with pytest.raises(FencedError):
            self.add(second, 1)

    def test_a_zombie_that_comes_back_late_adds_nothing(self) -> None:
        zombie = self.claimed("zombie")
        self.add(zombie, 1)
        second = self.claimed("b")
        for version in range(2, 12):
            self.add(second, version)
            if version > 4:
                second.subsume(second.all()[0])
        with pytest.raises(FencedError):
            self.add(zombie, 2)
        other = self.open_store("c")
        other.recover()
        assert {checkpoint.generation for checkpoint in other.all()} == {second.generation}
        assert other.all() == second.all()

    def test_of_many_claims_at_once_the_last_one_owns(self) -> None:
        stores = [self.open_store(f"d{i}") for i in range(6)]
        for store in stores:
            store.recover()
        barrier = threading.Barrier(len(stores))

        def claim(store: CompletedCheckpointStore) -> None:
            barrier.wait()
            store.claim()

        threads = [threading.Thread(target=claim, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        generations = [store.generation for store in stores]
        assert len(set(generations)) == len(stores)
        stores.sort(key=lambda store: store.generation)
        for store in stores[:-1]:
            with pytest.raises(FencedError):
                self.add(store, 1)
        self.add(stores[-1], 1)

    def test_ids_ascend_although_all_checkpoints_were_discarded(self) -> None:
        first = self.claimed("a")
        last = [self.add(first, version) for version in (1, 2, 3)][-1]
        discard(first)
        second = self.claimed("b")
        assert second.all() == []
        assert min(second.claims()[-1].id, self.add(second, 1).id) > last.id

    def test_a_fenced_driver_discards_nothing(self) -> None:
        first = self.claimed("a")
        added = self.add(first, 1)
        second = self.claimed("b")
        with pytest.raises(FencedError):
            discard(first)
        second.recover()
        assert second.all() == [added]


class CheckpointIDCounterContract(ABC):
    @abstractmethod
    def open_counter(self) -> CheckpointIDCounter:
        """Unused counter."""

    def test_counts(self) -> None:
        counter = self.open_counter()
        assert [counter.get(), counter.get()] == [1, 1]
        counter.set_count(17)
        assert counter.get() == 17
        counter.shutdown(JobStatus.FINISHED)

    def test_never_goes_back(self) -> None:
        counter = self.open_counter()
        counter.set_count(5)
        with pytest.raises(ValueError, match="id 4 is below the next free id, 5"):
            counter.set_count(4)
        assert counter.get() == 5
