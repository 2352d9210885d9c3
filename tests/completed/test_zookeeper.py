"""ZooKeeper store on a real server."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.completed import (
    CheckpointIDCounter,
    CompletedCheckpointStore,
)
from spark_ckpt.completed.base import MAX_CLAIMS
from spark_ckpt.completed.errors import (
    DamagedRecordError,
    FencedError,
    LocationMovedError,
    OwnershipLostError,
    UnknownOutcomeError,
)
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.completed.zookeeper_counter import ZooKeeperCheckpointIDCounter
from spark_ckpt.completed.zookeeper_session import ZooKeeperSession
from spark_ckpt.errors import StorageError
from spark_ckpt.storage import LocalStorage
from tests.completed.contract import CheckpointIDCounterContract, FencingStoreContract
from tests.completed.records import add, owner
from tests.completed.zookeeper_place import Place
from tests.storage.faulty import Fault
from tests.support.waiting import PATIENCE
from tests.support.zookeeper import SESSION_SECONDS, ZooKeeperServer


class TestZooKeeperStore(FencingStoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, place: Place) -> None:
        self.place = place

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        return self.place.open(name)


class TestZooKeeperStoreWhoseAnswersGetLost(TestZooKeeperStore):
    """Of every four transactions, the third is applied but its answer is lost, and the fourth is lost."""

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        store = self.place.open(name)
        ok: Any = None
        self.place.sessions[-1].faults = [ok, ok, Fault.LOST_ANSWER, Fault.LOST_REQUEST] * 20
        return store


class TestZooKeeperCounter(CheckpointIDCounterContract):
    @pytest.fixture(autouse=True)
    def _session(self, zookeeper: ZooKeeperServer) -> Iterator[None]:
        self.path = f"/test-{uuid.uuid4().hex}/counter"
        self.session = ZooKeeperSession(zookeeper.quorum, SESSION_SECONDS)
        yield
        self.session.close()

    def open_counter(self) -> CheckpointIDCounter:
        return ZooKeeperCheckpointIDCounter(self.session, self.path)

    def test_a_node_without_a_number_is_a_typed_error(self) -> None:
        self.session.ensure_shared(self.path)
        with pytest.raises(StorageError, match="instead of a number"):
            self.open_counter().set_count(2)


# ---- ownership -------------------------------------------------------------------------------------------------------


def test_a_new_driver_takes_over_at_once_while_the_old_one_is_alive(place: Place) -> None:
    first = place.claimed("a")
    kept = add(first, 1)
    second = place.claimed("b")
    added = add(second, 2)
    assert place.nodes() == ["counter", "owner-2", "records"]
    with pytest.raises(FencedError, match="host-b"):
        add(first, 2)
    assert place.stored() == [kept, added]


def test_a_driver_whose_session_has_expired_completes_nothing_more(place: Place) -> None:
    store = place.claimed()
    kept = add(store, 1)
    place.server.expire(place.sessions[-1].client)
    for _ in range(2):
        with pytest.raises(OwnershipLostError, match="sessionTimeout"):
            add(store, 2)
    with pytest.raises(OwnershipLostError):
        store.check_owner()
    assert place.stored() == [kept]
    store.recover()
    store.claim()
    assert add(store, 2).generation == 2


def test_a_driver_whose_session_has_expired_says_who_took_over(place: Place) -> None:
    first = place.claimed("a")
    place.server.expire(place.sessions[-1].client)
    place.claimed("b")
    with pytest.raises(FencedError, match="host-b") as caught:
        add(first, 1)
    assert not isinstance(caught.value, OwnershipLostError)


def test_a_driver_whose_node_was_deleted_completes_nothing_more(place: Place) -> None:
    store = place.claimed()
    with place.server.client() as client:
        client.delete(f"{place.node}/owner-1")
        client.create(f"{place.node}/owner-2")
    with pytest.raises(OwnershipLostError, match=r"owner-1, with which .* is gone"):
        add(store, 1)
    assert place.stored() == []


def test_a_fenced_driver_drops_nothing(place: Place) -> None:
    first = place.claimed("a")
    kept = add(first, 1)
    second = place.claimed("b")
    with pytest.raises(FencedError, match="host-b"):
        first.subsume(kept)
    assert place.stored() == second.all() == [kept]
    assert place.mirrored() == [kept]


def test_a_driver_that_claims_right_after_ours_is_not_counted_in(place: Place) -> None:
    first = place.open("a")
    first.recover()
    commit = place.sessions[-1].commit
    rivals: list[ZooKeeperCompletedCheckpointStore] = []

    def overtaken(build: Callable[[Any], None]) -> Sequence[Any] | None:
        done = commit(build)
        if place.nodes("/records") and not rivals:
            rivals.append(place.claimed("b"))
        return done

    place.sessions[-1].commit = overtaken  # type: ignore[method-assign]
    first.claim()
    assert [claim.owner.host for claim in first.claims()] == ["host-a"]
    with pytest.raises(FencedError, match="host-b"):
        add(first, 1)
    added = add(rivals[0], 1)
    assert place.stored() == [added]


def test_an_owner_that_is_gone_is_no_hindrance(place: Place) -> None:
    """The claim succeeds if the owner's session ends just before the next driver deletes its node."""
    place.claimed("a")
    second = place.open("b")
    second.recover()
    commit = place.sessions[-1].commit

    def commit_late(build: Callable[[Any], None]) -> Sequence[Any] | None:
        place.sessions[-1].commit = commit  # type: ignore[method-assign]
        place.sessions[0].close()
        return commit(build)

    place.sessions[-1].commit = commit_late  # type: ignore[method-assign]
    assert second.claim().generation == 2


def test_a_number_of_claims_is_kept_whatever_the_clock_says(place: Place) -> None:
    for i in range(MAX_CLAIMS + 2):
        place.clock.now = 4_000_000_000_000 if i % 2 else 0
        store = place.claimed(f"d{i}")
    assert [claim.id for claim in store.claims()] == list(range(3, MAX_CLAIMS + 3))
    assert place.nodes("/records") == [f"{claim.id:020d}" for claim in store.claims()]
    assert store.generation == MAX_CLAIMS + 2


def _race(quorum: str, node: str, directory: str, name: str, start: Any, results: Any) -> None:
    """Claims six times; after each claim, adds up to four checkpoints until fenced off. Reports the ids that it won."""
    session = ZooKeeperSession(quorum, SESSION_SECONDS)
    store = ZooKeeperCompletedCheckpointStore(session, node, Mirror(LocalStorage(directory)), owner(name))
    store.recover()
    start.wait()
    won: list[tuple[int, int]] = []
    for _ in range(6):
        won.append((store.claim().id, store.generation))
        try:
            for version in range(1, 5):
                won.append((add(store, version).id, store.generation))  # noqa: PERF401  (adds before the fence count)
        except FencedError:
            store.recover()
    session.close()
    results.put(won)


def test_of_two_processes_in_a_race_one_wins_each_id(place: Place, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(2), context.Queue()
    arguments = (place.server.quorum, place.node, str(tmp_path))
    racers = [context.Process(target=_race, args=(*arguments, name, start, results)) for name in "ab"]
    for racer in racers:
        racer.start()
    won = [entry for _ in racers for entry in results.get(timeout=PATIENCE)]
    for racer in racers:
        racer.join()
    ids = [record_id for record_id, _ in won]
    assert sorted(ids) == list(range(1, len(ids) + 1)), "an id has two winners, or none"
    stored = place.stored()
    assert stored
    assert {record.id: record.generation for record in stored}.items() <= dict(won).items()


# ---- lost answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST])
def test_an_unknown_outcome_is_found_out_by_reading_back(place: Place, fault: Fault) -> None:
    store = place.claimed()
    place.sessions[-1].faults = [fault]
    added = add(store, 1)
    assert place.stored() == [added]
    assert add(store, 2).id == added.id + 1


@pytest.mark.parametrize("arrives", [True, False])
def test_an_unknown_outcome_is_settled_before_anything_else(place: Place, arrives: bool) -> None:
    store = place.claimed()
    session = place.sessions[-1]
    session.faults = [Fault.LATE, Fault.LOST_REQUEST, Fault.LOST_REQUEST]
    with pytest.raises(UnknownOutcomeError, match=r"records/0{19}2"):
        add(store, 1)
    with pytest.raises(UnknownOutcomeError):
        add(store, 2)
    if arrives:
        session.deliver()
    settled = store.settle()
    assert settled is not None
    assert place.stored() == [settled] == store.all()
    assert store.settle() is None
    session.deliver()
    assert place.stored() == [settled]
    assert add(store, 2).id == settled.id + 1


def test_a_request_that_arrives_just_before_it_is_repeated_counts(place: Place) -> None:
    store = place.claimed()
    session = place.sessions[-1]
    session.faults = [Fault.LATE]
    get = session.get

    def delayed(path: str) -> tuple[bytes, int] | None:
        session.get = get  # type: ignore[method-assign]
        found = get(path)
        session.deliver()
        return found

    session.get = delayed  # type: ignore[method-assign]
    added = add(store, 1)
    assert place.stored() == [added]
    assert add(store, 2).id == added.id + 1


@pytest.mark.parametrize("arrives", [True, False])
def test_an_unknown_outcome_may_be_settled_by_another_driver(place: Place, arrives: bool) -> None:
    first = place.claimed("a")
    place.sessions[0].faults = [Fault.LATE, Fault.LOST_REQUEST, Fault.LOST_REQUEST]
    with pytest.raises(UnknownOutcomeError):
        add(first, 1)
    if arrives:
        place.sessions[0].deliver()
    second = place.claimed("b")
    if arrives:
        assert first.settle() == second.all()[0]
    else:
        with pytest.raises(FencedError, match="host-b"):
            first.settle()
        place.sessions[0].deliver()
    assert place.stored() == second.all()
    with pytest.raises(FencedError, match="host-b"):
        add(first, 2)


def test_a_dropped_record_is_not_brought_back(place: Place) -> None:
    first = place.claimed("a")
    place.sessions[0].faults = [Fault.LOST_ANSWER]
    second = place.open("b")
    read = place.sessions[0].get

    def get(path: str) -> tuple[bytes, int] | None:
        place.sessions[0].get = read  # type: ignore[method-assign]
        second.recover()
        second.claim()
        for version in (2, 3):
            add(second, version)
        second.subsume(second.all()[0])
        return read(path)

    place.sessions[0].get = get  # type: ignore[method-assign]
    with pytest.raises(FencedError, match="host-b"):
        add(first, 1)
    assert [record.version for record in place.stored()] == [2, 3]


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST])
def test_a_claim_whose_answer_is_lost_counts_once(place: Place, fault: Fault) -> None:
    place.claimed("a")
    store = place.open("b")
    store.recover()
    place.sessions[-1].faults = [fault]
    claim = store.claim()
    assert (claim.id, claim.generation) == (2, 2)
    assert place.nodes() == ["counter", "owner-2", "records"]
    add(store, 1)


def test_a_drop_whose_answer_is_lost_counts(place: Place) -> None:
    store = place.claimed()
    dropped, kept = add(store, 1), add(store, 2)
    place.sessions[-1].faults = [Fault.LOST_ANSWER]
    store.subsume(dropped)
    assert place.stored() == [kept] == place.mirrored()


def test_recovery_reads_until_two_listings_agree(place: Place) -> None:
    writer = place.claimed("writer")
    first = add(writer, 1)
    add(writer, 2)
    reader = place.open("reader")
    steps: Iterator[Callable[[], object]] = iter([lambda: writer.subsume(first), lambda: add(writer, 3)])
    get = place.sessions[-1].get

    def moved(path: str) -> tuple[bytes, int] | None:
        if "records" in path:
            next(steps, lambda: None)()
        return get(path)

    place.sessions[-1].get = moved  # type: ignore[method-assign]
    reader.recover()
    assert [record.version for record in reader.all()] == [2, 3]


def test_a_damaged_node_is_named(place: Place) -> None:
    added = add(place.claimed(), 1)
    with place.server.client() as client:
        client.set(f"{place.node}/records/{added.id:020d}", b"{}")
    with pytest.raises(DamagedRecordError, match=rf"zookeeper://{place.server.quorum}{place.node}/records/0{{19}}2"):
        place.stored()


def test_a_node_of_another_location_is_refused(place: Place, tmp_path: Path) -> None:
    place.claimed()
    before, place.storage = place.storage, LocalStorage(tmp_path / "copy")
    with pytest.raises(LocationMovedError, match=r"another spark.*zookeeper\.path") as caught:
        place.open("b").recover()
    assert caught.value.recorded == before.location
    assert caught.value.location == place.storage.location
