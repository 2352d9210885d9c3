from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.errors import CheckpointError
from spark_ckpt.operations.mirror.note import MirrorNote
from spark_ckpt.storage import LocalStorage


@pytest.mark.parametrize("promoted_ms", [None, 17])
def test_it_is_read_as_it_was_written(tmp_path: Path, promoted_ms: int | None) -> None:
    storage, note = LocalStorage(tmp_path), MirrorNote("s3://bucket/q", 3, promoted_ms=promoted_ms)
    assert MirrorNote.read(storage) is None
    note.write(storage)
    assert MirrorNote.read(storage) == note


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "source": "/x"}', "\xff"])
def test_a_damaged_one_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    storage = LocalStorage(tmp_path)
    storage.write_atomic("ckpt/mirror.json", text.encode("latin-1"))
    with pytest.raises(CheckpointError, match=r"mirror\.json is not the note of a mirror"):
        MirrorNote.read(storage)
