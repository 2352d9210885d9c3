from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.storage import LocalStorage, Whose, create_and_find, create_or_find
from tests.storage.faulty import Fault, FaultyStorage


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    return FaultyStorage(LocalStorage(tmp_path, durable=False))


def test_a_new_file_is_mine(storage: FaultyStorage) -> None:
    assert create_and_find(storage, "a", b"mine").whose is Whose.MINE
    assert [operation for operation, _ in storage.log] == ["create"]


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.EXISTS_AFTER_DONE])
def test_a_file_of_which_the_answer_got_lost_is_mine(storage: FaultyStorage, fault: Fault) -> None:
    storage.fail("create", "a", fault)
    assert create_and_find(storage, "a", b"mine").whose is Whose.MINE


def test_a_file_with_other_bytes_is_of_another(storage: FaultyStorage) -> None:
    storage.write_atomic("a", b"other")
    assert create_and_find(storage, "a", b"mine").whose is Whose.OTHER
    assert not create_or_find(storage, "a", b"mine")


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.EXISTS_AFTER_DONE])
def test_a_file_that_cannot_be_read_back_is_unknown(storage: FaultyStorage, fault: Fault) -> None:
    """This holds after "exists", too: with OTHER, the writer would delete the files that its own record refers to."""
    storage.fail("create", "a", fault, times=2)
    storage.fail("read", "a", times=2)
    assert create_and_find(storage, "a", b"mine").whose is Whose.UNKNOWN
    storage.inner.delete("a")
    with pytest.raises(StorageError, match=r"cannot create .*a: "):
        create_or_find(storage, "a", b"mine")


def test_a_request_that_may_yet_arrive_is_unknown(storage: FaultyStorage) -> None:
    storage.fail("create", "a", Fault.LATE)
    assert create_and_find(storage, "a", b"mine").whose is Whose.UNKNOWN
    storage.deliver()
    assert storage.read("a") == b"mine"


def test_a_refused_create_is_tried_again_and_can_no_longer_arrive(storage: FaultyStorage) -> None:
    storage.fail("create", "a", Fault.REFUSED, times=2)
    found = create_and_find(storage, "a", b"mine", tries=3)
    assert (found.whose, found.may_arrive) == (Whose.MINE, False)
    assert [operation for operation, _ in storage.log] == ["create"] * 3


def test_a_create_that_was_refused_each_time_is_an_error(storage: FaultyStorage) -> None:
    storage.fail("create", "a", Fault.REFUSED, times=3)
    with pytest.raises(StorageError, match=r"cannot create .*a: injected"):
        create_and_find(storage, "a", b"mine", tries=3)
    assert not storage.inner.exists("a")


def test_a_refusal_says_nothing_of_an_earlier_request(storage: FaultyStorage) -> None:
    storage.fail("create", "a", Fault.LATE)
    storage.fail("create", "a", Fault.REFUSED, times=2)
    found = create_and_find(storage, "a", b"mine", tries=3)
    assert (found.whose, found.may_arrive) == (Whose.UNKNOWN, True)
    storage.fail("create", "b", Fault.REFUSED)
    assert create_and_find(storage, "b", b"mine", again=True).whose is Whose.UNKNOWN


def test_a_file_that_is_found_counts_once_it_is_durable(storage: FaultyStorage) -> None:
    storage.fail("create", "a", Fault.LOST_ANSWER)
    storage.fail("make durable", "a", times=2)
    assert create_and_find(storage, "a", b"mine").whose is Whose.UNKNOWN
    with pytest.raises(StorageError, match="injected"):
        create_or_find(storage, "a", b"mine")
    assert create_or_find(storage, "a", b"mine")


def test_what_is_known_to_be_absent_is_created_again(storage: FaultyStorage) -> None:
    storage.fail("create", "a", Fault.LOST_REQUEST, times=2)
    assert create_and_find(storage, "a", b"mine", tries=3).whose is Whose.MINE


def test_a_later_try_that_fails_says_nothing_of_the_first(storage: FaultyStorage) -> None:
    storage.fail("create", "a", Fault.LATE)
    storage.fail("create", "a", Fault.ERROR)
    assert create_and_find(storage, "a", b"mine", tries=2).whose is Whose.UNKNOWN
    storage.fail("create", "b", Fault.ERROR)
    with pytest.raises(StorageError, match="injected"):
        create_and_find(storage, "b", b"mine", tries=2)


def test_what_exists_and_is_not_there_is_of_another(storage: FaultyStorage) -> None:
    """A file that exists but cannot be found, such as a dangling link or one deleted meanwhile, counts as another's."""
    Path(storage.location, "a").symlink_to("nowhere")
    assert create_and_find(storage, "a", b"mine", tries=2).whose is Whose.OTHER
