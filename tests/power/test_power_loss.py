"""An acknowledged checkpoint survives a power loss, and every retained one reads back."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

import pytest

from spark_ckpt.storage import LocalStorage
from tests.power.recorder import Recorder
from tests.power.script import Script, play

DISKS = 60
"""Disks judged per script; `make power-loss` judges more."""


@pytest.mark.parametrize("what", [stat.S_ISDIR, stat.S_ISREG], ids=["directories", "files"])
def test_a_sync_that_is_left_out_is_found(what: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    sync = Recorder._fsync

    def leave_out(self: Recorder, descriptor: int) -> None:
        if not what(os.fstat(descriptor).st_mode):
            sync(self, descriptor)

    monkeypatch.setattr(Recorder, "_fsync", leave_out)
    assert play(0, Script(batches=2, runs=1), disks=DISKS).lost


def test_a_file_that_goes_before_the_deletion_of_its_record_is_durable_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LocalStorage, "sync_deletions", lambda storage, directory: None)
    assert play(0, Script(batches=4, runs=1, settings={"maxParallelism": "8", "retained": "2"}), disks=DISKS).lost


@pytest.mark.parametrize("seed", range(4))
def test_any_disk_that_a_power_loss_leaves_is_whole(seed: int) -> None:
    played = play(seed, disks=DISKS)
    assert played.disks == DISKS
    assert not played.lost, "\n".join(f"after operation {n}, {lost}: {wrong}" for n, lost, wrong in played.lost)
