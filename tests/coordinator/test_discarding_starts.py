"""A start while the run before discards all checkpoints, on a storage whose listings lag."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.completed import JobStatus
from spark_ckpt.storage import FileInfo, LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.driver import Driver, faulty_environment


class Lagging(FaultyStorage):
    """A storage whose listings still show the deleted records."""

    def __init__(self, location: Path) -> None:
        super().__init__(LocalStorage(location))
        self._seen: dict[str, FileInfo] = {}

    def list(self, directory: str) -> Sequence[FileInfo]:
        files = super().list(directory)
        if directory != "ckpt/completed":
            return files
        self._seen |= {file.name: file for file in files}
        return sorted(self._seen.values(), key=lambda file: file.name)


def test_a_start_ends_if_the_run_before_has_discarded_its_checkpoint(tmp_path: Path) -> None:
    storage = Lagging(tmp_path)
    settings = {"cleanup": "deleteOnCancellation"}
    first, second = (
        Driver(tmp_path, settings=settings, environment=faulty_environment(storage), query_id="1" * 32)
        for _ in range(2)
    )
    first.batch(1)
    before = first.job
    assert before is not None

    def close_first(operation: str, name: str) -> None:
        if operation == "create" and name.startswith("ckpt/completed/"):
            storage.before = lambda operation, name: None
            before.close(JobStatus.CANCELLED)

    storage.before = close_first
    with pytest.raises(VersionNotFoundError):
        second.trigger(2)
