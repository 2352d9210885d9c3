from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_ckpt.completed import (
    CheckpointIDCounter,
    CheckpointRecord,
    ClaimRecord,
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    LogIDCounter,
    encode_record,
)
from spark_ckpt.completed.base import MAX_CLAIMS
from spark_ckpt.completed.errors import ClaimDeletedError, DamagedRecordError, FencedError, UnknownOutcomeError
from spark_ckpt.completed.filesystem import LATE_REQUEST_SECONDS
from spark_ckpt.errors import StorageError
from spark_ckpt.storage import LocalStorage, Storage
from tests.completed.contract import CheckpointIDCounterContract, FencingStoreContract
from tests.completed.records import add, owner, record
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.clocks import NoClock
from tests.support.memory_storage import memory_storage


class TestFilesystemStoreOnALocalDisk(FencingStoreContract):
    @pytest.fixture(autouse=True)
    def _location(self, tmp_path: Path) -> None:
        self.path = tmp_path

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        return FilesystemCompletedCheckpointStore(LocalStorage(self.path), owner(name), clock=NoClock())


class TestFilesystemStoreOnAnObjectStore(FencingStoreContract):
    @pytest.fixture(autouse=True)
    def _location(self) -> None:
        self.storage = memory_storage()

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        return FilesystemCompletedCheckpointStore(self.storage, owner(name), clock=NoClock())


class TestFilesystemStoreWhoseAnswersGetLost(FencingStoreContract):
    """Every third create succeeds, but its outcome is reported as unknown."""

    @pytest.fixture(autouse=True)
    def _location(self, tmp_path: Path) -> None:
        self.path = tmp_path

    def open_store(self, name: str = "a") -> CompletedCheckpointStore:
        storage = FaultyStorage(LocalStorage(self.path))
        creates = 0

        def before(operation: str, name: str) -> None:
            nonlocal creates
            creates += operation == "create"
            if operation == "create" and creates % 3 == 0:
                storage.fail("create", ".", Fault.LOST_ANSWER)

        storage.before = before
        return FilesystemCompletedCheckpointStore(storage, owner(name), clock=NoClock())


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path))


def claimed(storage: Storage, name: str = "a", clock: NoClock | None = None) -> FilesystemCompletedCheckpointStore:
    store = FilesystemCompletedCheckpointStore(storage, owner(name), clock=clock or NoClock())
    store.recover()
    store.claim()
    return store


def stored(storage: Storage) -> list[CheckpointRecord]:
    store = FilesystemCompletedCheckpointStore(storage, owner("reader"), clock=NoClock())
    store.recover()
    return store.all()


RECORD_2 = r"0{19}2\.json"


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.EXISTS_AFTER_DONE])
def test_an_unknown_outcome_is_found_out_by_reading_back(storage: FaultyStorage, fault: Fault) -> None:
    store = claimed(storage)
    storage.fail("create", RECORD_2, fault)
    added = add(store, 1)
    assert stored(storage) == [added]
    assert add(store, 2).id == added.id + 1


def test_a_request_that_arrives_late_is_not_completed_twice(storage: FaultyStorage) -> None:
    store = claimed(storage)
    storage.fail("create", RECORD_2, Fault.LATE)
    added = add(store, 1)
    storage.deliver()
    assert stored(storage) == [added]


def test_an_outcome_that_stays_unknown_is_said_to_be(storage: FaultyStorage) -> None:
    store = claimed(storage)
    storage.fail("create", RECORD_2, Fault.LOST_REQUEST, times=100)
    with pytest.raises(UnknownOutcomeError, match=r"0{19}2\.json"):
        add(store, 1)
    assert store.all() == []
    with pytest.raises(UnknownOutcomeError):
        add(store, 1)


@pytest.mark.parametrize("arrives", [True, False])
def test_an_unknown_outcome_is_settled_before_anything_else(storage: FaultyStorage, arrives: bool) -> None:
    store = claimed(storage)
    storage.fail("create", RECORD_2, Fault.LATE, times=4)
    with pytest.raises(UnknownOutcomeError):
        add(store, 1)
    if arrives:
        storage.deliver()
    settled = store.settle()
    assert settled is not None
    assert settled.version == 1
    assert stored(storage) == [settled] == store.all()
    assert store.settle() is None
    storage.deliver()
    assert add(store, 2).id == settled.id + 1


def test_an_unknown_outcome_may_turn_out_to_be_lost(storage: FaultyStorage) -> None:
    first = claimed(storage, "a")
    storage.fail("create", RECORD_2, Fault.LOST_REQUEST, times=4)
    with pytest.raises(UnknownOutcomeError):
        add(first, 1)
    second = claimed(storage, "b")
    with pytest.raises(FencedError, match="host-b"):
        first.settle()
    assert second.all() == []


def test_a_certain_failure_after_an_unknown_outcome_leaves_it_unknown(storage: FaultyStorage) -> None:
    store = claimed(storage)
    storage.fail("create", RECORD_2, Fault.LATE)
    storage.fail("create", RECORD_2, Fault.ERROR, times=3)
    with pytest.raises(UnknownOutcomeError):
        add(store, 1)


def test_a_record_whose_request_may_still_arrive_is_not_dropped(storage: FaultyStorage) -> None:
    clock = NoClock()
    store = claimed(storage, clock=clock)
    storage.fail("create", RECORD_2, Fault.LATE)
    added = store.add(lambda checkpoint_id, attempt: record(checkpoint_id, 1, 1, attempt))
    assert not store.may_subsume(added)
    assert store.may_subsume(add(store, 2))
    clock.now += int(LATE_REQUEST_SECONDS * 1000)
    assert store.may_subsume(added)


def test_a_certain_failure_can_be_tried_again(storage: FaultyStorage) -> None:
    store = claimed(storage)
    storage.fail("create", RECORD_2, Fault.ERROR)
    with pytest.raises(StorageError, match="injected"):
        add(store, 1)
    assert store.settle() is None
    assert add(store, 1).id == 2


def test_a_claim_whose_answer_is_lost_counts(storage: FaultyStorage) -> None:
    storage.fail("create", r"0{19}1\.json", Fault.LOST_ANSWER)
    store = claimed(storage)
    assert store.generation == 1
    assert store.counter.get() == 2


def test_claims_of_drivers_in_a_race_go_on_to_the_next_id(storage: FaultyStorage, tmp_path: Path) -> None:
    rivals: list[FilesystemCompletedCheckpointStore] = []

    def before(operation: str, name: str) -> None:
        if operation == "create" and len(rivals) < 3:
            rivals.append(claimed(LocalStorage(tmp_path), f"rival{len(rivals)}"))

    storage.before = before
    store = claimed(storage)
    assert len(rivals) == 3
    assert store.generation == 4
    assert [claim.generation for claim in store.claims()] == [1, 2, 3, 4]


def test_a_driver_that_claims_right_after_ours_fences_ours(storage: FaultyStorage, tmp_path: Path) -> None:
    rivals: list[FilesystemCompletedCheckpointStore] = []

    def before(operation: str, name: str) -> None:
        if operation == "list" and storage.inner.exists(f"ckpt/completed/{1:020d}.json") and not rivals:
            rivals.append(claimed(LocalStorage(tmp_path), "rival"))

    storage.before = before
    store = claimed(storage)
    with pytest.raises(FencedError, match="host-rival"):
        add(store, 1)
    added = add(rivals[0], 1)
    assert stored(storage) == [added]


@pytest.mark.parametrize("answers", [True, False], ids=["answered", "not answered"])
@pytest.mark.parametrize("settles", [False, True])
def test_a_repeated_request_does_not_bring_back_what_the_next_owner_has_dropped(
    storage: FaultyStorage, tmp_path: Path, settles: bool, answers: bool
) -> None:
    first = claimed(storage, "a")
    if settles:
        storage.fail("create", RECORD_2, Fault.LOST_ANSWER)
        storage.fail("read", RECORD_2, times=4)
        with pytest.raises(UnknownOutcomeError):
            add(first, 1)
    else:
        storage.fail("create", RECORD_2, Fault.LOST_ANSWER)
        storage.fail("read", RECORD_2)
    rivals: list[FilesystemCompletedCheckpointStore] = []

    def before(operation: str, name: str) -> None:
        struck = not any(rule.times for rule in storage.rules)
        if operation == "read" and struck and not rivals:
            rivals.append(claimed(LocalStorage(tmp_path), "b"))
            for version in (2, 3):
                add(rivals[0], version)
            rivals[0].subsume(rivals[0].all()[0])
            if not answers:
                storage.fail("create", RECORD_2, Fault.LOST_ANSWER)

    storage.before = before
    with pytest.raises(FencedError, match="host-b"):
        first.settle() if settles else add(first, 1)
    assert [checkpoint.version for checkpoint in stored(storage)] == [2, 3]


def test_a_claim_that_the_next_owner_has_counted_stays(storage: FaultyStorage, tmp_path: Path) -> None:
    """The claim's id must not become free: a stalled earlier driver could still create a record with it."""
    storage.fail("create", r"0{19}1\.json", Fault.LOST_REQUEST)

    def before(operation: str, name: str) -> None:
        first = name.replace("2.json", "1.json")
        if operation == "read" and first != name and storage.inner.exists(first) and not storage.inner.exists(name):
            claimed(LocalStorage(tmp_path), "b")

    storage.before = before
    store = claimed(storage, "a")
    assert [claim.owner.host for claim in store.claims()] == ["host-a", "host-b", "host-a"]


def test_a_repeated_request_is_in_doubt_until_a_later_record_exists(storage: FaultyStorage) -> None:
    store = claimed(storage)
    storage.fail("create", RECORD_2, Fault.LOST_REQUEST)
    storage.fail("read", r"0{19}3\.json", times=4)
    with pytest.raises(UnknownOutcomeError):
        add(store, 1)
    assert store.settle() == stored(storage)[0]


def test_recovery_reads_until_two_listings_agree(storage: FaultyStorage, tmp_path: Path) -> None:
    writer = claimed(LocalStorage(tmp_path), "writer")
    first = add(writer, 1)
    second = add(writer, 2)
    steps: Iterator[Callable[[], object]] = iter([lambda: writer.subsume(first), lambda: add(writer, 3)])

    def before(operation: str, name: str) -> None:
        if operation == "read":
            next(steps, lambda: None)()

    storage.before = before
    assert [checkpoint.version for checkpoint in stored(storage)] == [2, 3]
    assert second.version == 2


def test_a_log_that_never_stands_still_is_a_typed_error(storage: FaultyStorage, tmp_path: Path) -> None:
    writer = claimed(LocalStorage(tmp_path), "writer")
    versions = iter(range(1, 1000))

    def before(operation: str, name: str) -> None:
        if operation == "list":
            add(writer, next(versions))

    storage.before = before
    with pytest.raises(StorageError, match="changed during each"):
        stored(storage)


def test_recovery_counts_from_the_last_number_whatever_is_missing_below(storage: FaultyStorage) -> None:
    store = claimed(storage)
    for version in range(1, 6):
        add(store, version)
    for checkpoint in store.all()[:-1]:
        store.subsume(checkpoint)
    assert claimed(storage, "b").claims()[-1].id == 7


def test_other_files_in_the_directory_are_left_alone(storage: FaultyStorage, tmp_path: Path) -> None:
    store = claimed(storage)
    added = add(store, 1)
    directory = tmp_path / "ckpt" / "completed"
    for name in (".00000000000000000009.json.crc", "9.json", "notes.txt", "00000000000000000009.json.bak"):
        (directory / name).write_text("x")
    assert stored(storage) == [added]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "no JSON": lambda data: b"\x00" * len(data),
    "no object": lambda data: b"[]",
    "another digit": lambda data: data.replace(b'"rows": 10', b'"rows": 11'),
    "another format": lambda data: data.replace(b'"format": 1', b'"format": 2'),
    "a field less": lambda data: json.dumps(
        {key: value for key, value in json.loads(data).items() if key != "version"}
    ).encode(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_named_with_what_to_do(storage: FaultyStorage, tmp_path: Path, damage: str) -> None:
    add(claimed(storage), 1)
    file = tmp_path / "ckpt" / "completed" / f"{2:020d}.json"
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.raises(DamagedRecordError, match=r"was damaged after it was written\. Restore") as caught:
        stored(storage)
    assert caught.value.path == str(file)


def test_a_store_continues_past_a_damaged_record(storage: FaultyStorage, tmp_path: Path) -> None:
    """If the driver that wrote the record is still alive, it finds its next id taken."""
    before = claimed(storage)
    add(before, 1)
    add(before, 2)
    (tmp_path / "ckpt" / "completed" / f"{3:020d}.json").write_bytes(b"")
    store = FilesystemCompletedCheckpointStore(storage, owner())
    with pytest.raises(DamagedRecordError):
        store.recover()
    assert store.leave_out_damaged() == [f"ckpt/completed/{3:020d}.json"]
    store.recover()
    assert [record.id for record in store.all()] == [2]
    assert store.claim().id == 4
    with pytest.raises(FencedError):
        add(before, 3)


def test_a_record_under_another_number_is_refused(storage: FaultyStorage, tmp_path: Path) -> None:
    add(claimed(storage), 1)
    directory = tmp_path / "ckpt" / "completed"
    (directory / f"{2:020d}.json").rename(directory / f"{5:020d}.json")
    with pytest.raises(DamagedRecordError, match="the record of id 2"):
        stored(storage)


def test_generations_that_go_back_are_refused(storage: FaultyStorage) -> None:
    claimed(storage, "a")
    add(claimed(storage, "b"), 1)
    storage.write_atomic(f"ckpt/completed/{4:020d}.json", encode_record(record(4, 1, generation=1)))
    with pytest.raises(DamagedRecordError, match="generation 1 after generation 2"):
        stored(storage)


def test_a_claim_that_comes_when_its_id_is_free_again_is_none(storage: FaultyStorage) -> None:
    """The claim comes from a repeated request of a driver that died before deleting it; it does not count."""
    store = claimed(storage, "a")
    dropped, kept = add(store, 1), add(store, 2)
    store.subsume(dropped)
    late = f"ckpt/completed/{2:020d}.json"
    storage.write_atomic(late, encode_record(ClaimRecord(2, 2, owner("b"), "attempt", 0)))
    assert stored(storage) == [kept]
    assert add(store, 3).id == 4
    next_store = claimed(storage, "c")
    assert next_store.generation == 2
    assert [claim.id for claim in next_store.claims()] == [1, 5]
    assert not storage.exists(late)


# ---- ownership without clocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("boot_ms", [0, 1_700_000_000_000, 4_000_000_000_000], ids=["1970", "2023", "2096"])
def test_a_number_of_claims_is_kept_whatever_the_clocks_say(storage: FaultyStorage, boot_ms: int) -> None:
    clock = NoClock()
    claimed(storage, "before", clock)
    clock.now = boot_ms
    for i in range(MAX_CLAIMS + 3):
        store = claimed(storage, f"d{i}", clock)
    assert [claim.id for claim in store.claims()] == list(range(5, MAX_CLAIMS + 5))
    assert [claim.id for claim in claimed(storage, "e", clock).claims()] == list(range(6, MAX_CLAIMS + 6))
    assert store.generation == MAX_CLAIMS + 4


@pytest.fixture(params=[1, 2], ids=["last claim saw its own in the way", "last claim did not"])
def zombie(storage: FaultyStorage, request: pytest.FixtureRequest) -> FilesystemCompletedCheckpointStore:
    """Owner that stalled while later take-overs pushed out the claim on its next id, which is now free again."""
    zombie = claimed(storage, "zombie")
    add(zombie, 1)
    for i in range(MAX_CLAIMS + request.param):
        store = claimed(storage, f"d{i}")
        add(store, i + 2)
        store.subsume(store.all()[0])
    assert not storage.exists(next_name(zombie))
    return zombie


def next_name(store: FilesystemCompletedCheckpointStore) -> str:
    return f"ckpt/completed/{store.counter.get():020d}.json"


def test_a_zombie_whose_next_id_is_free_again_completes_nothing(
    storage: FaultyStorage, zombie: FilesystemCompletedCheckpointStore
) -> None:
    before = stored(storage)
    with pytest.raises(FencedError, match="has taken over"):
        add(zombie, 2)
    assert stored(storage) == before
    with pytest.raises(FencedError):
        zombie.check_owner()
    assert claimed(storage, "next").all() == before
    assert not storage.exists(next_name(zombie))


def test_a_zombie_whose_next_id_is_free_again_owns_nothing(zombie: FilesystemCompletedCheckpointStore) -> None:
    with pytest.raises(FencedError, match="has taken over"):
        zombie.check_owner()


def test_what_a_zombie_has_created_before_it_died_does_not_count(
    storage: FaultyStorage, zombie: FilesystemCompletedCheckpointStore
) -> None:
    before, name = stored(storage), next_name(zombie)
    storage.write_atomic(name, encode_record(record(zombie.counter.get(), 2, zombie.generation)))
    assert stored(storage) == before
    assert claimed(storage, "next").all() == before
    assert not storage.exists(name)


def test_a_claim_between_the_record_of_a_zombie_and_its_look_for_its_own_does_not_count_it(
    storage: FaultyStorage, zombie: FilesystemCompletedCheckpointStore, tmp_path: Path
) -> None:
    before, name = stored(storage), next_name(zombie)
    later: list[FilesystemCompletedCheckpointStore] = []

    def take_over(operation: str, _: str) -> None:
        if storage.inner.exists(name) and not later:
            later.append(claimed(LocalStorage(tmp_path), "later"))

    storage.before = take_over
    with pytest.raises(FencedError, match="host-later"):
        add(zombie, 2)
    assert later[0].all() == before == stored(storage)


def test_what_a_zombie_has_left_is_not_taken_for_the_claim_that_was_there(storage: FaultyStorage) -> None:
    zombies = [claimed(storage, f"zombie{i}") for i in range(2)]
    for i in range(MAX_CLAIMS + 1):
        store = claimed(storage, f"d{i}")
    assert not storage.exists(next_name(zombies[1]))
    kept = add(store, 1)
    for zombie in zombies:  # the first one's next id is the id of the second one's claim
        with pytest.raises(FencedError):
            add(zombie, 1)
    assert stored(storage) == [kept]


def test_a_zombie_deletes_nothing(storage: FaultyStorage, zombie: FilesystemCompletedCheckpointStore) -> None:
    """The zombie's record may be gone by now, and its name may belong to another record."""
    storage.fail("delete", ".", times=100)
    with pytest.raises(FencedError):
        add(zombie, 2)
    assert [rule.times for rule in storage.rules] == [100]


def test_a_start_that_stood_still_before_its_claim_does_not_take_an_id_that_is_free_again(
    storage: FaultyStorage,
) -> None:
    slow = FilesystemCompletedCheckpointStore(storage, owner("slow"), clock=NoClock())
    slow.recover()
    for i in range(MAX_CLAIMS + 1):
        last = claimed(storage, f"d{i}")
        add(last, i + 1)
    assert not storage.exists(next_name(slow))
    newest = last.all()[-1]
    assert slow.claim().id == newest.id + 1
    with pytest.raises(FencedError, match="host-slow"):
        add(last, 100)
    assert slow.all()[-1] == newest


def test_a_start_whose_claim_lies_below_others_owns_nothing(storage: FaultyStorage) -> None:
    """The claim reuses the id of a dropped checkpoint that the last claim still saw; all records between are gone."""
    first = claimed(storage, "first")
    slow = FilesystemCompletedCheckpointStore(storage, owner("slow"), clock=NoClock())
    slow.recover()
    add(first, 1)
    for i in range(MAX_CLAIMS + 1):
        last = claimed(storage, f"d{i}")
    last.subsume(last.all()[0])
    kept = add(last, 2)
    assert slow.claim().id < kept.id
    with pytest.raises(FencedError, match="has taken over"):
        add(slow, 2)
    with pytest.raises(FencedError, match="has taken over"):
        slow.check_owner()
    assert stored(storage) == [kept]


def test_an_owner_that_cannot_look_for_its_claim_is_in_doubt(storage: FaultyStorage) -> None:
    store = claimed(storage)
    storage.fail("read", r"0{19}1\.json")
    with pytest.raises(UnknownOutcomeError, match=r"0{19}2\.json"):
        add(store, 1)
    assert store.all() == []
    assert store.settle() == stored(storage)[0]


def test_claims_go_in_the_order_of_their_ids_and_not_past_a_failure(storage: FaultyStorage) -> None:
    def ids() -> list[int]:
        return sorted(int(file.name.partition(".")[0]) for file in storage.inner.list("ckpt/completed"))

    for i in range(MAX_CLAIMS + 2):
        storage.fail("delete", r"0{19}2\.json")
        claimed(storage, f"d{i}")
    assert [claim.id for claim in claimed(storage, "e").claims()] == list(range(4, MAX_CLAIMS + 4))
    assert ids() == list(range(2, MAX_CLAIMS + 4))
    storage.rules.clear()
    assert [claim.id for claim in claimed(storage, "f").claims()] == list(range(5, MAX_CLAIMS + 5)) == ids()


def test_a_claim_comes_anew_if_its_id_was_used_since_the_log_was_read(storage: FaultyStorage) -> None:
    """During a slow start, the owner may complete and drop the very checkpoints that prove it alive."""
    owning = claimed(storage, "owning")
    add(owning, 1)
    slow = FilesystemCompletedCheckpointStore(storage, owner("slow"), clock=NoClock())
    slow.recover()
    for version in range(2, 7):
        add(owning, version)
    for checkpoint in owning.all()[:-2]:
        owning.subsume(checkpoint)
    claim = slow.claim()
    assert claim.id == owning.counter.get()
    assert [checkpoint.version for checkpoint in slow.all()] == [5, 6] == [c.version for c in stored(storage)]
    with pytest.raises(FencedError, match="host-slow"):
        add(owning, 7)
    add(slow, 7)
    assert not storage.exists(f"ckpt/completed/{3:020d}.json")


def test_a_claim_that_was_deleted_by_hand_is_told_from_a_takeover(storage: FaultyStorage) -> None:
    store = claimed(storage)
    storage.delete(f"ckpt/completed/{1:020d}.json")
    with pytest.raises(ClaimDeletedError, match=r"0{19}1\.json, this driver.s claim .* was deleted"):
        add(store, 1)
    assert [checkpoint.version for checkpoint in stored(storage)] == [1]  # complete, although not acknowledged
    assert claimed(storage, "b").all() == stored(storage)


class TestTheCounterOfALog(CheckpointIDCounterContract):
    def open_counter(self) -> CheckpointIDCounter:
        return LogIDCounter()
