"""The store in ZooKeeper, on a real server."""

from __future__ import annotations

import multiprocessing
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.completed import (
    CheckpointIDCounter,
    CheckpointRecord,
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    JobStatus,
)
from spark_ckpt.completed.base import CLAIM_GRACE_MS
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.completed.zookeeper_counter import ZooKeeperCheckpointIDCounter
from spark_ckpt.completed.zookeeper_session import NoAnswerError, ZooKeeperSession
from spark_ckpt.errors import (
    CorruptRecordError,
    FencedError,
    LocationMovedError,
    OwnershipLostError,
    StorageError,
    UnknownOutcomeError,
    ZooKeeperUnavailableError,
)
from spark_ckpt.storage import LocalStorage, Storage
from tests.completed.contract import CheckpointIDCounterContract, FencingStoreContract
from tests.completed.making import add, owner
from tests.storage.faulty import Fault, FaultyStorage
from tests.storage.test_remote import NoClock
from tests.support.zookeeper import ZooKeeperServer, await_gone


class FaultySession(ZooKeeperSession):
    """Transactions fail as told, the first one first."""

    def __init__(self, quorum: str, timeout: float = 20.0) -> None:
        super().__init__(quorum, timeout)
        self.faults: list[Fault] = []
        self.late: list[Callable[[Any], None]] = []

    def commit(self, build: Callable[[Any], None]) -> Sequence[Any] | None:
        fault = self.faults.pop(0) if self.faults else None
        if fault in (None, Fault.LOST_ANSWER):
            done = super().commit(build)
            if fault is None:
                return done
        if fault is Fault.LATE:
            self.late.append(build)
        raise NoAnswerError("injected")

    def deliver(self) -> None:
        for build in self.late:
            super().commit(build)
        self.late.clear()

    @property
    def client(self) -> Any:
        return self._connected()


class Place:
    """A node and a location of a test's own, and the stores that it has opened there."""

    def __init__(self, server: ZooKeeperServer, directory: Path) -> None:
        self.server = server
        self.storage: Storage = LocalStorage(directory)
        self.node = f"/test-{uuid.uuid4().hex}/query"
        self.clock = NoClock()
        self.sessions: list[FaultySession] = []

    def open(self, name: str = "a", timeout: float = 20.0) -> ZooKeeperCompletedCheckpointStore:
        self.sessions.append(FaultySession(self.server.quorum, timeout))
        mirror = Mirror(self.storage)
        return ZooKeeperCompletedCheckpointStore(self.sessions[-1], self.node, mirror, owner(name), self.clock)

    def claimed(self, name: str = "a", timeout: float = 20.0) -> ZooKeeperCompletedCheckpointStore:
        store = self.open(name, timeout)
        store.recover()
        store.claim()
        return store

    def stored(self) -> list[CheckpointRecord]:
        store = self.open("reader")
        store.recover()
        return store.all()

    def mirrored(self) -> list[CheckpointRecord]:
        """What somebody reads who has only the file system."""
        log = FilesystemCompletedCheckpointStore(self.storage, owner("reader"))
        log.recover()
        return log.all()

    def nodes(self, below: str = "") -> list[str]:
        with self.server.client() as client:
            names: list[str] = client.get_children(self.node + below)
            return sorted(names)

    def close(self) -> None:
        for session in self.sessions:
            session.close()


@pytest.fixture
def place(zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[Place]:
    place = Place(zookeeper, tmp_path)
    yield place
    place.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that the test may stop."""
    with ZooKeeperServer(tmp_path / "server") as server:
        yield server


@pytest.fixture
def own_place(own_server: ZooKeeperServer, tmp_path: Path) -> Iterator[Place]:
    place = Place(own_server, tmp_path / "location")
    yield place
    place.close()


class TestZooKeeperStore(FencingStoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, place: Place) -> None:
        self.place = place

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        return self.place.open(name)


class TestZooKeeperStoreWhoseAnswersGetLost(TestZooKeeperStore):
    """Every third transaction is carried out without an answer, and every fourth is lost."""

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        store = self.place.open(name)
        ok: Any = None
        self.place.sessions[-1].faults = [ok, ok, Fault.LOST_ANSWER, Fault.LOST_REQUEST] * 20
        return store


class TestZooKeeperCounter(CheckpointIDCounterContract):
    @pytest.fixture(autouse=True)
    def _session(self, zookeeper: ZooKeeperServer) -> Iterator[None]:
        self.path = f"/test-{uuid.uuid4().hex}/counter"
        self.session = ZooKeeperSession(zookeeper.quorum, 20)
        yield
        self.session.close()

    def open_counter(self) -> CheckpointIDCounter:
        return ZooKeeperCheckpointIDCounter(self.session, self.path)

    def test_users_never_get_an_id_twice(self) -> None:
        taken: list[int] = []

        def take() -> None:
            counter = self.open_counter()
            taken.extend(counter.get_and_increment() for _ in range(10))

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(taken) == list(range(1, 31))

    def test_a_node_without_a_number_is_a_typed_error(self) -> None:
        self.session.ensure(self.path)
        with pytest.raises(StorageError, match="no number"):
            self.open_counter().get_and_increment()


# ---- who owns --------------------------------------------------------------------------------------------------------


def test_a_new_driver_takes_over_at_once_while_the_old_one_is_alive(place: Place) -> None:
    first = place.claimed("a", timeout=60)
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
    with pytest.raises(OwnershipLostError, match="owner-1 is gone"):
        add(store, 1)
    assert place.stored() == []


def test_a_driver_that_was_shut_out_drops_nothing(place: Place) -> None:
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
    """Its session ends just when the next driver is about to delete its node."""
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


def test_claims_are_kept_for_the_grace_time(place: Place) -> None:
    for name in "ab":
        place.claimed(name)
        place.clock.now += CLAIM_GRACE_MS - 1000
    assert [claim.id for claim in place.claimed("c").claims()] == [2, 3]
    assert place.nodes("/records") == [f"{2:020d}", f"{3:020d}"]
    place.clock.now += 2 * CLAIM_GRACE_MS
    assert [(claim.id, claim.generation) for claim in place.claimed("d").claims()] == [(4, 4)]


def _race(quorum: str, node: str, directory: str, name: str, start: Any, results: Any) -> None:
    """Claims again and again, and adds until it is shut out."""
    session = ZooKeeperSession(quorum, 20)
    store = ZooKeeperCompletedCheckpointStore(session, node, Mirror(LocalStorage(directory)), owner(name))
    store.recover()
    start.wait()
    won: list[tuple[int, int]] = []
    for _ in range(6):
        won.append((store.claim().id, store.generation))
        try:
            for version in range(1, 5):
                won.append((add(store, version).id, store.generation))  # noqa: PERF401  (those before the fence count)
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
    won = [entry for _ in racers for entry in results.get(timeout=60)]
    for racer in racers:
        racer.join()
    ids = [record_id for record_id, _ in won]
    assert sorted(ids) == list(range(1, len(ids) + 1)), "an id has two winners, or none"
    stored = place.stored()
    assert stored
    assert {record.id: record.generation for record in stored}.items() <= dict(won).items()


# ---- answers that do not come ----------------------------------------------------------------------------------------


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


def test_a_server_that_stands_still_leaves_the_outcome_unknown(own_place: Place) -> None:
    store = own_place.claimed(timeout=2)
    kept = add(store, 1)
    with own_place.server.frozen(), pytest.raises(UnknownOutcomeError, match=r"records/0{19}3"):
        add(store, 2)
    # The session may have expired while it stood still, and the request may have been carried out before.
    try:
        settled = [store.settle()]
    except FencedError:
        settled = []
    assert own_place.stored() == [kept, *settled]


def test_a_driver_outlives_a_crash_of_the_server(own_place: Place) -> None:
    store = own_place.claimed(timeout=30)
    kept = add(store, 1)
    own_place.server.stop()
    own_place.server.start()
    added = add(store, 2)
    assert own_place.stored() == [kept, added]
    store.check_owner()


def test_a_driver_that_is_cut_off_for_too_long_has_lost(own_place: Place) -> None:
    store = own_place.claimed(timeout=1)
    session = own_place.sessions[-1]
    session.client._connection._socket.shutdown(2)
    with own_place.server.client() as client:
        session.client.stop()
        await_gone(client, f"{own_place.node}/owner-1")
    session.client.start()
    with pytest.raises(OwnershipLostError):
        add(store, 1)


def test_without_a_server_the_error_names_the_quorum_and_no_password(tmp_path: Path) -> None:
    session = ZooKeeperSession("user:secret@127.0.0.1:1", timeout=0.3)
    store = ZooKeeperCompletedCheckpointStore(session, "/x/query", Mirror(LocalStorage(tmp_path)), owner())
    with pytest.raises(ZooKeeperUnavailableError, match=r"cannot reach zookeeper://127\.0\.0\.1:1") as caught:
        store.recover()
    assert "secret" not in str(caught.value)
    assert "zookeeper.quorum" in str(caught.value)
    store.shutdown(JobStatus.FAILED)


def test_a_server_that_goes_away_is_named(own_place: Place) -> None:
    store = own_place.open(timeout=1)
    store.recover()
    own_place.server.stop()
    with pytest.raises(ZooKeeperUnavailableError, match=own_place.server.quorum):
        store.recover()


# ---- what is there ---------------------------------------------------------------------------------------------------


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
    with pytest.raises(CorruptRecordError, match=rf"zookeeper://{place.server.quorum}{place.node}/records/0{{19}}2"):
        place.stored()


def test_a_node_of_another_location_is_refused(place: Place, tmp_path: Path) -> None:
    place.claimed()
    before, place.storage = place.storage, LocalStorage(tmp_path / "copy")
    with pytest.raises(LocationMovedError, match=r"another spark.*zookeeper\.path") as caught:
        place.open("b").recover()
    assert caught.value.recorded == before.location
    assert caught.value.location == place.storage.location


class TestMirror:
    def test_follows_what_is_added_and_dropped(self, place: Place) -> None:
        store = place.claimed()
        for version in range(1, 5):
            add(store, version)
            assert place.mirrored() == store.all()
        store.subsume(store.all()[0])
        assert place.mirrored() == store.all() == place.stored()

    def test_what_failed_is_made_up_for_in_order(self, place: Place, tmp_path: Path) -> None:
        storage = FaultyStorage(LocalStorage(tmp_path))
        place.storage = storage
        store = place.claimed()
        kept = add(store, 1)
        storage.fail("create", "completed/", times=1)
        storage.fail("list", "completed", times=1)
        added = [add(store, 2), add(store, 3)]
        assert place.stored() == [kept, *added]
        assert place.mirrored() == [kept]
        added.append(add(store, 4))
        assert place.mirrored() == [kept, *added]

    def test_the_next_driver_makes_up_for_what_the_last_one_left(self, place: Place, tmp_path: Path) -> None:
        storage = FaultyStorage(LocalStorage(tmp_path))
        place.storage = storage
        first = place.claimed("a")
        dropped, kept = add(first, 1), add(first, 2)
        storage.fail("create", "completed/", times=2)
        added = add(first, 3)
        first.subsume(dropped)
        assert place.mirrored() == [dropped, kept]
        place.claimed("b")
        assert place.mirrored() == [kept, added]

    def test_an_owner_of_before_leaves_the_files_of_the_next_one(self, place: Place, tmp_path: Path) -> None:
        storage = FaultyStorage(LocalStorage(tmp_path))
        place.storage = storage
        first = place.claimed("a")
        storage.fail("create", "completed/")
        add(first, 1)  # so that it looks anew at what files there are
        commit = place.sessions[0].commit

        def overtaken(build: Callable[[Any], None]) -> Sequence[Any] | None:
            done = commit(build)
            place.sessions[0].commit = commit  # type: ignore[method-assign]
            add(place.claimed("b"), 3)
            return done

        place.sessions[0].commit = overtaken  # type: ignore[method-assign]
        add(first, 2)
        assert [record.version for record in place.mirrored()] == [1, 2, 3]

    def test_a_log_of_files_is_taken_over(self, place: Place) -> None:
        log = FilesystemCompletedCheckpointStore(place.storage, owner("before"))
        log.recover()
        log.claim()
        kept = [add(log, 1), add(log, 2)]
        store = place.open()
        store.recover()
        assert store.all() == kept
        claim = store.claim()
        assert (claim.id, claim.generation) == (4, 2)
        assert place.stored() == kept == place.mirrored()
        with pytest.raises(FencedError, match="host-a"):
            add(log, 3)

    def test_its_claims_are_those_of_the_truth(self, place: Place) -> None:
        place.claimed("a")
        place.claimed("b")
        log = FilesystemCompletedCheckpointStore(place.storage, owner("reader"))
        log.recover()
        assert [claim.owner.host for claim in log.claims()] == ["host-a", "host-b"]
