"""A note is read as it was written, and every other content is one error that names the file."""

from __future__ import annotations

import pytest

from spark_ckpt.errors import CheckpointError, StateFileNotFoundError
from spark_ckpt.storage import MemoryStorage, read_note
from tests.support.memory_storage import memory_storage


@pytest.fixture
def storage() -> MemoryStorage:
    return memory_storage()


def read(storage: MemoryStorage) -> int:
    return read_note(storage, "ckpt/a.json", 2, "a note", lambda fields: int(fields["n"]), way_out=". Delete it")


def test_a_note(storage: MemoryStorage) -> None:
    storage.write_atomic("ckpt/a.json", b'{"format": 2, "n": "7"}')
    assert read(storage) == 7


def test_no_note(storage: MemoryStorage) -> None:
    with pytest.raises(StateFileNotFoundError):
        read(storage)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b"\xff", "decode"),
        (b"[1]", "list indices"),
        (b"null", "subscriptable"),
        (b'{"n": 7}', "'format'"),
        (b'{"format": 3, "n": 7}', "format 3; 2 is supported"),
        (b'{"format": 2}', "'n'"),
        (b'{"format": 2, "n": "x"}', "invalid literal"),
    ],
)
def test_other_content(storage: MemoryStorage, content: bytes, reason: str) -> None:
    storage.write_atomic("ckpt/a.json", content)
    with pytest.raises(CheckpointError, match=rf"a\.json is not a note: .*{reason}.*\. Delete it$"):
        read(storage)
