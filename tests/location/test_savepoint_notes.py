from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.location.savepoint_notes import SavepointNote, SavepointNotes, write_note
from spark_ckpt.storage.local import LocalStorage


def note(number: int) -> SavepointNote:
    return SavepointNote(number, number - 1, 1000 * number, f"/savepoints/{number}")


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def test_a_note_takes_the_place_of_earlier_ones(storage: LocalStorage, tmp_path: Path) -> None:
    reader = SavepointNotes(storage)
    for number in (1, 2, 3):
        write_note(storage, note(number))
        assert len(list((tmp_path / "ckpt/savepoints").iterdir())) == 1
        assert reader.next() == note(number)
        assert reader.next() is None


def test_a_note_that_comes_late_hides_no_newer_one(storage: LocalStorage) -> None:
    write_note(storage, note(2))
    write_note(storage, note(1))
    assert SavepointNotes(storage).next() == note(2)


def test_other_files_stay(storage: LocalStorage, tmp_path: Path) -> None:
    write_note(storage, note(1))
    (tmp_path / "ckpt/savepoints/0.json").write_bytes(b"")
    write_note(storage, note(2))
    assert (tmp_path / "ckpt/savepoints/0.json").exists()


def test_a_storage_that_cannot_delete_still_has_the_note(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: object) -> None:
        raise StorageError("delete", "ckpt/savepoints", "read-only")

    write_note(storage, note(1))
    monkeypatch.setattr(storage, "delete_all", refuse)
    with caplog.at_level("INFO"):
        write_note(storage, note(2))
    assert "notes of earlier savepoints stay" in caplog.text
    assert SavepointNotes(storage).next() == note(2)
