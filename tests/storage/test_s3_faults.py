"""Storage on a faulty S3: retries, error reports, and the condition of exclusive creates."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from spark_ckpt.completed import FilesystemCompletedCheckpointStore, Owner
from spark_ckpt.completed.retention import select_subsumed
from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome, S3Storage, Whose, create_and_find, holding, s3_client
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from spark_ckpt.storage.s3_config import s3_file_system
from tests.completed.records import add
from tests.support.clocks import NoClock
from tests.support.faulty_s3 import FaultyS3, S3Fault

TRIES = 6
ALWAYS = 1_000_000
PASSING = [S3Fault.SLOW_DOWN, S3Fault.DROPPED]


BUCKET = f"bucket-{uuid.uuid4().hex}"

OPERATIONS: list[tuple[str, tuple[object, ...], str]] = [
    ("read", ("d/a",), "GET"),
    ("read_range", ("d/a", 0, 1), "GET"),
    ("write_atomic", ("d/a", b"x"), "PUT"),
    ("list", ("d",), "GET"),
    ("size", ("d/a",), "HEAD"),
    ("delete", ("d/a",), "DELETE"),
    ("delete_all", (["d/a", "d/b"],), "POST"),
]
"""Storage operations with their arguments and the HTTP method of their request."""


@pytest.fixture(scope="module")
def running_server(patient_clients: None) -> Iterator[FaultyS3]:
    with FaultyS3() as server:
        yield server


@pytest.fixture
def server(running_server: FaultyS3) -> FaultyS3:
    running_server.forget()
    return running_server


@pytest.fixture(scope="module")
def client(running_server: FaultyS3) -> Any:
    """Client shared by all tests, because creating one takes longer than the tests themselves."""
    client = s3_file_system(BUCKET, running_server.settings())
    client.mkdir(BUCKET)
    return client


@pytest.fixture
def clock() -> NoClock:
    return NoClock()


@pytest.fixture
def storage(client: Any, clock: NoClock) -> S3Storage:
    root = f"{BUCKET}/{uuid.uuid4().hex}"
    return S3Storage(client, root, f"s3a://{root}", clock)


@pytest.mark.parametrize("fault", PASSING)
def test_what_goes_wrong_is_asked_again_until_there_is_an_end(
    storage: S3Storage, server: FaultyS3, clock: NoClock, fault: S3Fault
) -> None:
    """No layer below retries, except that aiohttp repeats a request once after a dropped connection."""
    for operation, arguments, method in OPERATIONS:
        requests = TRIES * (2 if fault is S3Fault.DROPPED and method != "POST" else 1)
        storage.write_atomic("d/a", b"x")
        server.forget()
        clock.slept.clear()
        server.fail(method, "", fault, requests - 1)
        getattr(storage, operation)(*arguments)
        assert server.asked(method, "") == requests, operation
        assert clock.slept == [0.2, 0.4, 0.8, 1.6, 3.2]

        server.fail(method, "", fault, ALWAYS)
        with pytest.raises(StorageError) as failed:
            getattr(storage, operation)(*arguments)
        server.forget()
        assert failed.value.path == storage.describe("d" if operation == "list" else "d/a")
        assert failed.value.operation == operation.partition("_")[0].replace("size", "read")
        assert f"({TRIES} tries). If the storage is slow or throttles requests, wait" in str(failed.value)


def test_the_reason_of_the_refusal_is_reported(storage: S3Storage, server: FaultyS3) -> None:
    server.fail("PUT", "d/a", S3Fault.SLOW_DOWN, ALWAYS)
    with pytest.raises(StorageError, match="Please reduce your request rate"):
        storage.write_atomic("d/a", b"x")


def test_an_answer_that_does_not_come_is_not_waited_for_without_end(
    storage: S3Storage, server: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "REQUEST_SECONDS", 0.2)
    server.fail("PUT", "late", S3Fault.HELD, ALWAYS)
    with pytest.raises(StorageError, match=rf"/late: no answer in 0\.2 s \({TRIES} tries\)"):
        storage.write_atomic("late", b"x")
    result = storage.create_exclusive("late", b"x")
    assert result.outcome is CreateOutcome.UNKNOWN
    assert "no answer" in str(result.cause)


def test_a_write_whose_answer_is_lost_is_there(storage: S3Storage, server: FaultyS3) -> None:
    server.fail("PUT", "d/a", S3Fault.ANSWER_DROPPED)
    storage.write_atomic("d/a", b"x")
    assert storage.read("d/a") == b"x"


@pytest.mark.parametrize(
    ("fault", "outcome", "is_there"),
    [
        (S3Fault.SLOW_DOWN, CreateOutcome.REFUSED, False),
        (S3Fault.CONFLICT, CreateOutcome.REFUSED, False),
        (S3Fault.TOO_MANY, CreateOutcome.REFUSED, False),
        (S3Fault.UNAVAILABLE, CreateOutcome.UNKNOWN, False),
        (S3Fault.INTERNAL, CreateOutcome.UNKNOWN, False),
        (S3Fault.DROPPED, CreateOutcome.UNKNOWN, False),
        (S3Fault.ANSWER_DROPPED, CreateOutcome.UNKNOWN, True),
    ],
)
def test_an_exclusive_create_is_one_request(
    storage: S3Storage, server: FaultyS3, clock: NoClock, fault: S3Fault, outcome: CreateOutcome, is_there: bool
) -> None:
    """So a refusal is the answer to the only request, and the next one is another try. aiohttp may repeat a request
    whose body it has not sent."""
    tries = TRIES if outcome is CreateOutcome.REFUSED else 1
    server.fail("PUT", "d/new", fault, 2 if fault is S3Fault.DROPPED else tries)
    assert storage.create_exclusive("d/new", b"mine").outcome is outcome
    assert server.asked("PUT", "d/new") == tries or fault is S3Fault.DROPPED
    assert clock.slept == ([0.2, 0.4, 0.8, 1.6, 3.2] if tries == TRIES else [])
    server.forget()
    assert storage.exists("d/new") is is_there
    again = storage.create_exclusive("d/new", b"mine").outcome
    assert again is (CreateOutcome.LOST if is_there else CreateOutcome.WON)
    server.fail("PUT", "d/other", fault, tries)
    found = create_and_find(storage, "d/other", b"mine", tries=2)
    assert (found.whose, found.may_arrive) == (Whose.MINE, outcome is CreateOutcome.UNKNOWN)


def test_a_failed_condition_that_is_not_named_is_one(storage: S3Storage, server: FaultyS3) -> None:
    """The answer 412 suffices: AWS names the failed condition in the answer, but other servers may not."""
    server.fail("PUT", "d/new", S3Fault.CONDITION_FAILED)
    assert storage.create_exclusive("d/new", b"mine").outcome is CreateOutcome.LOST


@pytest.mark.parametrize("fault", [S3Fault.SLOW_DOWN, S3Fault.CONFLICT])
def test_no_checkpoint_is_kept_for_a_request_that_was_refused(
    storage: S3Storage, server: FaultyS3, fault: S3Fault
) -> None:
    store = FilesystemCompletedCheckpointStore(storage, Owner("host", 1, "token", "query", "run"), clock=NoClock())
    store.recover()
    store.claim()
    for version in range(1, 9):
        server.fail("PUT", f"{store.counter.get():020d}.json", fault, 1 + version)
        add(store, version)
        for record in select_subsumed([each for each in store.all() if store.may_subsume(each)], 2):
            store.subsume(record)
    assert [each.version for each in store.all()] == [7, 8]


# ---- start of a driver -----------------------------------------------------------------------------------------------


def claim(storage: S3Storage) -> int:
    store = FilesystemCompletedCheckpointStore(storage, Owner("host", 1, "token", "query", "run"), clock=NoClock())
    store.recover()
    return store.claim().generation


def test_a_server_that_ignores_the_condition_is_refused(storage: S3Storage, server: FaultyS3) -> None:
    server.fail("PUT", "probe-", S3Fault.CONDITION_IGNORED, ALWAYS)
    with pytest.raises(ExclusiveCreateUnsupportedError, match="two drivers could both complete") as refused:
        claim(storage)
    assert refused.value.path == storage.location
    assert list(storage.list("ckpt/completed")) == []


@pytest.mark.parametrize("_attempt", range(3))
def test_a_server_that_checks_the_condition_before_it_has_the_body_is_refused(
    storage: S3Storage, server: FaultyS3, _attempt: int
) -> None:
    """It needs no luck: one of two creates begins before the other and ends after it."""
    server.fail("PUT", "probe-", S3Fault.CHECKED_FIRST, ALWAYS)
    with pytest.raises(ExclusiveCreateUnsupportedError, match=r"began before another.*'zookeeper'") as refused:
        claim(storage)
    assert refused.value.path == storage.location
    assert list(storage.list("ckpt/completed")) == []


def test_a_server_that_checks_the_conditions_of_several_requests_at_once_is_refused(
    storage: S3Storage, server: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(S3Storage, "_overlapping_creates_won", lambda storage, name: False)
    server.fail("PUT", "probe-", S3Fault.CHECKED_AT_ONCE, ALWAYS)
    with pytest.raises(ExclusiveCreateUnsupportedError, match="several creates of one file at the same time"):
        claim(storage)
    assert list(storage.list("ckpt/completed")) == []


def test_a_server_that_holds_back_the_second_of_two_creates_is_not_refused(
    storage: S3Storage, server: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that locks an object from the first byte of a request to its last."""
    monkeypatch.setattr(holding, "_HOLD_SECONDS", 0.0)
    assert [claim(storage) for _ in range(3)] == [1, 2, 3]


def test_of_overlapping_creates_one_wins(storage: S3Storage) -> None:
    errors = holding.overlapping_creates(storage._fs, storage._path("d/a"), b"around" * 10, b"within" * 10)
    assert [isinstance(error, FileExistsError) for error in errors].count(True) == 1
    winner = (b"around", b"within")[errors.index(None)]
    assert storage.read("d/a") == winner * 10


def test_a_probe_costs_a_bounded_number_of_requests(storage: S3Storage, server: FaultyS3) -> None:
    storage.probe("ckpt/completed")
    assert (server.asked("PUT", "probe-"), len(server.requests)) == (16, 17)
    assert list(storage.list("ckpt/completed")) == []


def test_a_server_that_does_not_know_the_condition_is_refused(storage: S3Storage, server: FaultyS3) -> None:
    server.fail("PUT", "probe-", S3Fault.UNKNOWN_CONDITION, ALWAYS)
    with pytest.raises(ExclusiveCreateUnsupportedError, match="A header implies what is not implemented") as refused:
        claim(storage)
    assert refused.value.path.startswith(storage.describe("ckpt/completed/probe-"))
    assert list(storage.list("ckpt/completed")) == []


@pytest.mark.parametrize("fault", [*PASSING, S3Fault.ANSWER_DROPPED])
def test_a_server_that_is_busy_at_the_start_is_not_refused(
    storage: S3Storage, server: FaultyS3, fault: S3Fault
) -> None:
    server.fail("PUT", "probe-", fault, TRIES - 1)
    server.fail("PUT", ".json", fault, 2)
    assert claim(storage) == 1
    assert claim(storage) == 2


def test_a_server_that_stays_busy_is_reported(storage: S3Storage, server: FaultyS3) -> None:
    server.fail("PUT", "probe-", S3Fault.SLOW_DOWN, ALWAYS)
    with pytest.raises(StorageError, match=rf"ckpt/completed/probe-.*reduce your request rate.*\({TRIES} tries\)"):
        claim(storage)
