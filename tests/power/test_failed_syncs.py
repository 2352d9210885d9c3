"""A record that its driver counts survives a power loss, even if syncs fail now and then."""

from __future__ import annotations

import errno
import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.completed import FilesystemCompletedCheckpointStore, Owner, RecordFiles
from spark_ckpt.completed.errors import UnknownOutcomeError
from spark_ckpt.errors import StorageError
from spark_ckpt.storage import LocalStorage, Storage
from tests.completed.records import add
from tests.power.disks import prefixes, trees
from tests.power.recorder import Recorder
from tests.support.clocks import NoClock

RECORDS = 6
DISKS = 40
OWNER = Owner("host", 1, "token", "query", "run")


@dataclass
class FailingSyncs(Recorder):
    """Recorder whose syncs of directories fail with a probability, and then have no effect."""

    rng: random.Random = field(default_factory=random.Random)
    share: float = 0.4
    failed: int = 0

    def _fsync(self, file: Any) -> None:
        if self.rng.random() < self.share:
            self.failed += 1
            raise OSError(errno.EIO, "Input/output error")
        super()._fsync(file)


def until_it_works(store: FilesystemCompletedCheckpointStore, version: int) -> int:
    """Completes a checkpoint as the coordinator does: one in doubt is settled before the next try."""
    while True:
        with suppress(StorageError, UnknownOutcomeError):
            return (store.settle() or add(store, version)).id


def play(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Number of syncs that failed, and what is wrong after a power loss."""
    rng = random.Random(seed)
    root = folder / "disk"
    root.mkdir(parents=True)
    recorder = FailingSyncs(root, rng=random.Random(seed))
    with recorder.recording():
        store = FilesystemCompletedCheckpointStore(LocalStorage(root), OWNER, clock=NoClock())
        store.recover()
        recorder.share, share = 0.0, recorder.share
        store.claim()
        recorder.share = share
        for version in range(1, RECORDS + 1):
            recorder.mark("id", until_it_works(store, version))
    found = [
        (number, label, tree, disk.promised.get("id", 0))
        for number, disk in prefixes(recorder.operations, removals_last=False)
        for label, tree in trees(disk, rng, samples=3)
    ]
    wrong = []
    for count, (number, label, tree, promised) in enumerate(rng.sample(found, min(DISKS, len(found)))):
        there = folder / f"{count}"
        there.mkdir()
        tree.write(there)
        last = max(RecordFiles(LocalStorage(there, durable=False)).read_all({}), default=0)
        if last < promised:
            wrong.append(f"after operation {number}, {label}: the log ends with {last}, and {promised} was counted")
    return recorder.failed, wrong


@pytest.mark.parametrize("seed", range(3))
def test_a_record_that_counts_is_durable(tmp_path: Path, seed: int) -> None:
    failed, wrong = play(tmp_path, seed)
    assert failed > 0
    assert not wrong, "\n".join(wrong)


def test_a_record_that_counts_because_it_is_there_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStorage, "make_durable", Storage.make_durable)
    assert any(play(tmp_path / f"{seed}", seed)[1] for seed in range(5))
