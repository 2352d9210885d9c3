"""A mirror on a disk that lost its power has whole checkpoints only, and follows again."""

from __future__ import annotations

import random
from pathlib import Path

from spark_ckpt.location.snapshot import find_record
from spark_ckpt.operations.mirror.following import LocationMirror
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.power.disks import prefixes, trees
from tests.power.recorder import Recorder
from tests.support.invariants import assert_invariants
from tests.support.queries import make_query

DISKS = 60
"""Disks that are judged, of some thousands."""


def test_a_power_loss_leaves_each_checkpoint_whole_or_absent(tmp_path: Path, rng: random.Random) -> None:
    query = make_query(tmp_path / "q")
    disk = tmp_path / "disk"
    disk.mkdir()
    recorder = Recorder(disk)
    with recorder.recording():
        mirror = LocationMirror.open(query.storage, LocalStorage(disk / "mirror"))
        for batch in range(6, 10):
            copied = mirror.step()
            assert copied is not None
            recorder.mark("batch", copied.checkpoint.batch_id)
            query.run(range(batch, batch + 1))
    found = [
        (label, tree, disk.promised.get("batch"))
        for _, disk in prefixes(recorder.operations)
        for label, tree in trees(disk, rng, samples=1)
    ]
    assert len(found) > DISKS
    for number, (label, tree, promised) in enumerate(rng.sample(found, DISKS)):
        root = tmp_path / str(number)
        root.mkdir()
        tree.write(root)
        storage = LocalStorage(root / "mirror", durable=False)
        if promised is not None:
            assert find_record(storage, None).batch_id >= promised, label
            assert verify(storage, everything=True).is_whole, label
            assert_invariants(storage, orphans=True)
        LocationMirror.open(query.storage, storage).step()
        assert find_record(storage, None).batch_id == 9, label
        assert verify(storage, everything=True).is_whole, label
        assert_invariants(storage)
