"""Google Cloud Storage and Azure behind a proxy that refuses, drops, delays and repeats: who has created a file?"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome, FsspecStorage, Whose, create_and_find, resolve
from tests.support.clocks import NoClock
from tests.support.faulty_proxy import FaultyProxy, Loss, Refusal
from tests.support.object_stores import ACCOUNT, ObjectStore

ALWAYS = 1_000_000
TRIES = 6
WON, LOST, REFUSED, UNKNOWN = CreateOutcome


@dataclass(frozen=True)
class Faulty:
    """A storage behind a proxy, and the method of its uploads."""

    proxy: FaultyProxy
    storage: FsspecStorage
    method: str


def google(status: int, reason: str = "reason") -> Refusal:
    return Refusal(status, f'{{"error":{{"code":{status},"message":"{reason}"}}}}'.encode())


def microsoft(status: int, code: str) -> Refusal:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'.encode()
    return Refusal(status, body, {"x-ms-error-code": code, "Content-Type": "application/xml"})


def behind(store: ObjectStore, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> FsspecStorage:
    settings = {key: value.replace(store.address, proxy.address) for key, value in store.settings.items()}
    storage = resolve(f"{store.url}/{uuid.uuid4().hex}", settings)
    assert isinstance(storage, FsspecStorage)
    monkeypatch.setattr(storage, "_clock", NoClock())
    return storage


@pytest.fixture
def on_google(gcs: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faulty]:
    with FaultyProxy(gcs.address) as proxy:
        yield Faulty(proxy, behind(gcs, proxy, monkeypatch), "POST")


@pytest.fixture
def on_azure(azure: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faulty]:
    with FaultyProxy(azure.address) as proxy:
        yield Faulty(proxy, behind(azure, proxy, monkeypatch), "PUT")


GOOGLE = [
    (google(412, "At least one of the pre-conditions you specified did not hold."), LOST, False),
    (google(409, "conflict"), REFUSED, False),
    (google(429), REFUSED, False),
    (google(500), UNKNOWN, False),
    (google(503), UNKNOWN, False),
    (Loss.DROPPED, UNKNOWN, False),
    (Loss.ANSWER_DROPPED, UNKNOWN, True),
    (Loss.REPEATED, LOST, True),
]
AZURE = [
    (microsoft(409, "BlobAlreadyExists"), LOST, False),
    (microsoft(412, "ConditionNotMet"), LOST, False),
    (microsoft(409, "ContainerBeingDeleted"), UNKNOWN, False),
    (microsoft(412, "LeaseIdMissing"), UNKNOWN, False),
    (microsoft(429, "TooManyRequests"), UNKNOWN, False),
    (microsoft(500, "InternalError"), UNKNOWN, False),
    (microsoft(503, "ServerBusy"), UNKNOWN, False),
    (Loss.DROPPED, UNKNOWN, False),
    (Loss.REPEATED, LOST, True),
]


@pytest.mark.parametrize(("fault", "outcome", "is_there"), GOOGLE)
def test_outcome_of_a_create_on_google(
    on_google: Faulty, fault: Loss | Refusal, outcome: CreateOutcome, is_there: bool
) -> None:
    check_create(on_google, fault, outcome, is_there)


@pytest.mark.parametrize(("fault", "outcome", "is_there"), AZURE)
def test_outcome_of_a_create_on_azure(
    on_azure: Faulty, fault: Loss | Refusal, outcome: CreateOutcome, is_there: bool
) -> None:
    check_create(on_azure, fault, outcome, is_there)


def check_create(faulty: Faulty, fault: Loss | Refusal, outcome: CreateOutcome, is_there: bool) -> None:
    faulty.proxy.fail(faulty.method, "", fault, ALWAYS)
    result = faulty.storage.create_exclusive("d/a", b"mine")
    faulty.proxy.forget()
    assert result.outcome is outcome
    assert (result.cause is None) == (outcome is LOST)
    assert faulty.storage.exists("d/a") == is_there
    if is_there:
        assert faulty.storage.read("d/a") == b"mine"


@pytest.mark.parametrize("store", ["on_google", "on_azure"])
@pytest.mark.parametrize("fault", [Loss.ANSWER_DROPPED, Loss.REPEATED, Loss.DROPPED])
def test_the_creator_is_found_once_the_store_answers(request: pytest.FixtureRequest, store: str, fault: Loss) -> None:
    faulty: Faulty = request.getfixturevalue(store)
    faulty.proxy.fail(faulty.method, "", fault)
    assert create_and_find(faulty.storage, "d/a", b"mine", 3, pause=lambda: None).whose is Whose.MINE
    assert create_and_find(faulty.storage, "d/a", b"other", 3, pause=lambda: None).whose is Whose.OTHER
    assert faulty.storage.read("d/a") == b"mine"


@pytest.mark.parametrize("store", ["on_google", "on_azure"])
def test_a_refusal_that_lasts_is_an_error_at_once(request: pytest.FixtureRequest, store: str) -> None:
    faulty: Faulty = request.getfixturevalue(store)
    refusal = google(403, "no permission") if store == "on_google" else microsoft(403, "AuthorizationFailure")
    faulty.proxy.fail(faulty.method, "", refusal, ALWAYS)
    for call in (faulty.storage.create_exclusive, faulty.storage.write_atomic):
        faulty.proxy.requests.clear()
        with pytest.raises(StorageError):
            call("d/a", b"mine")
        assert len(faulty.proxy.requests) == 1


@pytest.mark.parametrize(("store", "client"), [("on_google", "gcs_client"), ("on_azure", "azure_client")])
def test_an_answer_that_does_not_come_is_not_waited_for_without_end(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, store: str, client: str
) -> None:
    faulty: Faulty = request.getfixturevalue(store)
    monkeypatch.setattr(f"spark_ckpt.storage.{client}.REQUEST_SECONDS", 0.2)
    faulty.proxy.fail(faulty.method, "", Loss.HELD, ALWAYS)
    result = faulty.storage.create_exclusive("late", b"x")
    assert result.outcome is UNKNOWN
    assert "no answer in 0.2 s" in str(result.cause)
    with pytest.raises(StorageError, match=rf"/late: no answer in 0\.2 s \({TRIES} tries\)"):
        faulty.storage.write_atomic("late", b"x")


@pytest.mark.parametrize("store", ["on_google", "on_azure"])
def test_each_request_is_sent_once_and_tried_again_by_the_storage(request: pytest.FixtureRequest, store: str) -> None:
    faulty: Faulty = request.getfixturevalue(store)
    refusal = google(503) if store == "on_google" else microsoft(503, "ServerBusy")
    faulty.storage.write_atomic("d/a", b"x")
    for call, method in (
        (lambda: faulty.storage.read("d/a"), "GET"),
        (lambda: faulty.storage.write_atomic("d/a", b"x"), faulty.method),
        (lambda: faulty.storage.delete("d/a"), "DELETE"),
    ):
        faulty.proxy.forget()
        faulty.proxy.fail(method, "", refusal, TRIES - 1)
        call()
        assert sum(each.startswith(method) for each in faulty.proxy.requests) == TRIES


def test_the_account_is_part_of_the_emulators_paths(on_azure: Faulty) -> None:
    """So the rules of the proxy meet the requests."""
    on_azure.storage.write_atomic("d/a", b"x")
    assert all(f" /{ACCOUNT}/" in each for each in on_azure.proxy.requests)
