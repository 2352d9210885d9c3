"""The mirror: files that replicate the records in ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.completed import (
    FilesystemCompletedCheckpointStore,
)
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.storage import LocalStorage
from tests.completed.records import add, owner
from tests.completed.zookeeper_place import Place
from tests.storage.faulty import FaultyStorage


def test_the_mirror_follows_what_is_added_and_dropped(place: Place) -> None:
    store = place.claimed()
    for version in range(1, 5):
        add(store, version)
        assert place.mirrored() == store.all()
    store.subsume(store.all()[0])
    assert place.mirrored() == store.all() == place.stored()


def test_a_checkpoint_that_is_dropped_last_leaves_no_file(place: Place) -> None:
    """With `cleanup`, all checkpoints are dropped at the end of a query, and their files right after."""
    store = place.claimed()
    for record in [add(store, version) for version in (1, 2, 3)]:
        store.subsume(record)
    assert place.mirrored() == place.stored() == []


def test_checkpoints_that_are_dropped_together_leave_no_file(place: Place) -> None:
    store = place.claimed()
    store.subsume(*[add(store, version) for version in (1, 2, 3)])
    assert place.mirrored() == place.stored() == []


def test_what_failed_is_made_up_for_in_order(place: Place, tmp_path: Path) -> None:
    storage = FaultyStorage(LocalStorage(tmp_path))
    place.storage = storage
    store = place.claimed()
    kept = add(store, 1)
    storage.fail("create", "completed/", times=1)
    storage.fail("list", "completed", times=1)
    added = [add(store, 2), add(store, 3)]
    assert place.stored() == [kept, *added]
    assert place.mirrored() == [kept]
    added.append(add(store, 4))
    assert place.mirrored() == [kept, *added]


def test_the_next_driver_makes_up_for_what_the_last_one_left(place: Place, tmp_path: Path) -> None:
    storage = FaultyStorage(LocalStorage(tmp_path))
    place.storage = storage
    first = place.claimed("a")
    dropped, kept = add(first, 1), add(first, 2)
    storage.fail("create", "completed/", times=2)
    added = add(first, 3)
    first.subsume(dropped)
    assert place.mirrored() == [dropped, kept]
    place.claimed("b")
    assert place.mirrored() == [kept, added]


def test_an_owner_of_before_leaves_the_files_of_the_next_one(place: Place, tmp_path: Path) -> None:
    storage = FaultyStorage(LocalStorage(tmp_path))
    place.storage = storage
    first = place.claimed("a")
    storage.fail("create", "completed/")
    add(first, 1)  # makes it list the files again
    commit = place.sessions[0].commit

    def overtaken(build: Callable[[Any], None]) -> Sequence[Any] | None:
        done = commit(build)
        place.sessions[0].commit = commit  # type: ignore[method-assign]
        add(place.claimed("b"), 3)
        return done

    place.sessions[0].commit = overtaken  # type: ignore[method-assign]
    add(first, 2)
    assert [record.version for record in place.mirrored()] == [1, 2, 3]


def test_a_log_of_files_is_taken_over(place: Place) -> None:
    log = FilesystemCompletedCheckpointStore(place.storage, owner("before"))
    log.recover()
    log.claim()
    kept = [add(log, 1), add(log, 2)]
    store = place.open()
    store.recover()
    assert store.all() == kept
    claim = store.claim()
    assert (claim.id, claim.generation) == (4, 2)
    assert place.stored() == kept == place.mirrored()
    with pytest.raises(FencedError, match="host-a"):
        add(log, 3)


def test_its_claims_are_those_of_the_truth(place: Place) -> None:
    place.claimed("a")
    place.claimed("b")
    log = FilesystemCompletedCheckpointStore(place.storage, owner("reader"))
    log.recover()
    assert [claim.owner.host for claim in log.claims()] == ["host-a", "host-b"]
