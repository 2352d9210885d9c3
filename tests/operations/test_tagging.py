"""A tagged checkpoint stays readable, whatever the query and the commands do."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError, StorageError
from spark_ckpt.location.errors import (
    CheckpointNotFoundError,
    NoCheckpointError,
    TagExistsError,
    TagNameError,
    TagNotFoundError,
)
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.tags import Tag, Tags
from spark_ckpt.operations.errors import TagRefusedError
from spark_ckpt.operations.gc import collect_garbage
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.tagging import tag_checkpoint, untag_checkpoint, with_tags
from spark_ckpt.operations.verify import verify
from spark_ckpt.recovery.state_check import check_state
from spark_ckpt.storage import LocalStorage, Storage
from tests.storage.faulty import FaultyStorage
from tests.support.clocks import NoClock
from tests.support.invariants import assert_invariants
from tests.support.queries import Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5."""
    return make_query(tmp_path / "q")


def ids(storage: Storage) -> list[int]:
    return [record.id for record in CheckpointLocation.open(storage.location).checkpoints()]


def assert_whole(storage: Storage, checkpoint_id: int) -> None:
    """Reads every block of a checkpoint that only a tag retains."""
    assert checkpoint_id not in ids(storage)
    record = CheckpointLocation.open(storage.location).find(checkpoint_id).record
    assert record is not None
    found = check_state(storage, read_checkpoint(storage, record), "_metadata")
    assert found.damages == []
    assert found.blocks > 0
    assert verify(storage, checkpoint_id).is_whole


def files_of(storage: Storage, checkpoint_id: int) -> set[str]:
    record = CheckpointLocation.open(storage.location).find(checkpoint_id).record
    assert record is not None
    return {f"ckpt/{path}" for path in (record.metadata.path, *read_checkpoint(storage, record).files())}


def test_a_tagged_checkpoint_outlives_the_retained_ones(query: Query) -> None:
    tagged = tag_checkpoint(query.storage, 5, "before-upgrade")
    assert (tagged.checkpoint.id, tagged.checkpoint.batch_id, tagged.tag) == (5, 3, "before-upgrade")
    files = files_of(query.storage, 5)
    query.run(range(6, 20))
    assert_whole(query.storage, 5)
    assert_invariants(query.storage)
    assert untag_checkpoint(query.storage, "before-upgrade") == Tag("before-upgrade", 5)
    query.run(range(20, 22))
    assert not any(query.storage.exists(name) for name in files)
    assert_invariants(query.storage)


def test_with_deferred_deletions_too(tmp_path: Path) -> None:
    storage = FaultyStorage(LocalStorage(tmp_path / "q"))
    storage.requests_are_dear = True
    query = Query(storage)
    query.run(range(6))
    tag_checkpoint(storage, 5, "a")
    query.run(range(6, 30))
    assert_whole(storage, 5)
    files = files_of(storage, 5)
    untag_checkpoint(storage, "a")
    query.run(range(30, 60))
    assert not any(storage.exists(name) for name in files)


def test_other_runs_keep_it(query: Query) -> None:
    tag_checkpoint(query.storage, 4, "a")
    query.run(range(6, 12))
    for first in (12, 14, 16):
        assert query.restart() == first
        query.driver.batch(first + 1)
        query.commit(first)
        query.run(range(first + 1, first + 2))
        assert_whole(query.storage, 4)
        assert_invariants(query.storage)
    files = files_of(query.storage, 4)
    untag_checkpoint(query.storage, "a")
    query.run(range(18, 20))
    assert not any(query.storage.exists(name) for name in files)
    assert_invariants(query.storage)


def test_what_was_untagged_while_no_query_ran_is_deleted_at_the_next_start(query: Query) -> None:
    tag_checkpoint(query.storage, 4, "a")
    query.run(range(6, 12))
    untag_checkpoint(query.storage, "a")
    query.restart()
    query.driver.batch(13)
    assert_invariants(query.storage)


def test_the_newest_by_default(query: Query) -> None:
    assert tag_checkpoint(query.storage, None, "newest").checkpoint.id == 7


def test_several_tags_of_a_checkpoint(query: Query) -> None:
    tag_checkpoint(query.storage, 5, "a")
    tag_checkpoint(query.storage, 5, "b")
    query.run(range(6, 12))
    untag_checkpoint(query.storage, "a")
    query.run(range(12, 14))
    assert_whole(query.storage, 5)
    records, tags = with_tags(CheckpointLocation.open(query.storage.location))
    assert [record.id for record in records] == [5, *ids(query.storage)]
    assert tags == {5: ["b"]}


def test_what_cannot_be_tagged(query: Query, tmp_path: Path) -> None:
    storage = query.storage
    tag_checkpoint(storage, 5, "a")
    for name, checkpoint_id, error in (
        ("a", 6, TagExistsError),
        ("17", 6, TagNameError),
        ("b", 2, CheckpointNotFoundError),
    ):
        with pytest.raises(error):
            tag_checkpoint(storage, checkpoint_id, name)
    query.run(range(6, 12))
    with pytest.raises(TagRefusedError, match="have subsumed checkpoint 5, which has the tag a only"):
        tag_checkpoint(storage, 5, "b")
    with pytest.raises(TagNotFoundError):
        untag_checkpoint(storage, "b")
    assert Tags(storage).list() == [Tag("a", 5)]
    empty = Query(LocalStorage(tmp_path / "empty"))
    with pytest.raises(NoCheckpointError):
        tag_checkpoint(empty.storage, None, "a")


def test_without_a_log(tmp_path: Path) -> None:
    query = make_query(tmp_path / "q", settings={"store": "standalone", "inlineThreshold": "0"})
    with pytest.raises(TagRefusedError, match="no log of completed checkpoints"):
        tag_checkpoint(query.storage, None, "a")


@pytest.mark.parametrize("operation", ["create", "list"], ids=["before the tag", "after the tag"])
def test_the_checkpoint_is_subsumed_meanwhile(tmp_path: Path, operation: str) -> None:
    query = make_query(tmp_path / "q")
    command = FaultyStorage(LocalStorage(tmp_path / "q"))
    name = Tag("a", 4).file
    has_run = False

    def before(there: str, file: str) -> None:
        nonlocal has_run
        is_due = (there, file) == ("create", name) if operation == "create" else query.storage.exists(name)
        if is_due and not has_run:
            has_run = True
            query.run(range(6, 9))

    command.before = before
    with pytest.raises(CheckpointNotFoundError):
        tag_checkpoint(command, 4, "a")
    assert has_run
    assert Tags(query.storage).list() == []
    query.run(range(9, 12))
    assert_invariants(query.storage)


def test_the_driver_deletes_nothing_while_it_cannot_list_the_tags(tmp_path: Path) -> None:
    storage = FaultyStorage(LocalStorage(tmp_path / "q"))
    query = Query(storage)
    query.run(range(6))
    tag_checkpoint(storage, 4, "a")
    files = files_of(storage, 4) | files_of(storage, 5)
    storage.fail("list", "ckpt/tags", times=1000)
    query.run(range(6, 8))
    assert all(storage.exists(name) for name in files)
    storage.rules.clear()
    query.run(range(8, 14))
    assert_whole(storage, 4)
    assert_invariants(storage)


def test_a_start_that_cannot_list_them_deletes_nothing_either(tmp_path: Path) -> None:
    storage = FaultyStorage(LocalStorage(tmp_path / "q"))
    query = Query(storage)
    query.run(range(6))
    tag_checkpoint(storage, 4, "a")
    query.run(range(6, 12))
    storage.fail("list", "ckpt/tags")
    query.restart()
    query.driver.batch(13)
    query.commit(12)
    query.run(range(13, 16))
    assert_whole(storage, 4)


def test_a_damaged_tag_stops_deletions_until_it_is_gone(query: Query) -> None:
    storage = query.storage
    tag_checkpoint(storage, 4, "a")
    tag_checkpoint(storage, 5, "b")
    query.run(range(6, 12))
    storage.write_atomic(Tag("b", 5).file, b"x")
    found = verify(storage, everything=True)
    assert [damage.path for damage in found.damages] == [storage.describe(Tag("b", 5).file)]
    with pytest.raises(DamagedRecordError):
        collect_garbage(storage, grace_seconds=0)
    query.restart()
    query.driver.batch(13)
    query.commit(12)
    query.run(range(13, 15))
    assert_whole(storage, 4)
    storage.delete(Tag("b", 5).file)
    query.run(range(15, 17))
    assert_whole(storage, 4)


def test_gc_and_verify_know_tagged_checkpoints(query: Query) -> None:
    storage = query.storage
    tag_checkpoint(storage, 4, "a")
    query.run(range(6, 12))
    assert collect_garbage(storage, grace_seconds=0).orphans == ()
    assert_whole(storage, 4)
    verification = verify(storage, everything=True)
    assert [verdict.record.id for verdict in verification.checkpoints] == [*reversed(ids(storage)), 4]
    assert verification.is_whole
    assert 4 not in verification.restorable
    files = files_of(storage, 4)
    shared = set().union(*(files_of(storage, other) for other in ids(storage)))
    lost = next(name for name in sorted(files - shared) if name.startswith("ckpt/shared/"))
    storage.delete(lost)
    damaged = verify(storage, everything=True)
    assert [verdict.record.id for verdict in damaged.checkpoints if not verdict.is_whole] == [4]
    with pytest.raises(DamagedCheckpointError):
        read_checkpoint(storage, Tags(storage).records()[4])
    untag_checkpoint(storage, "a")
    collect_garbage(storage, grace_seconds=0)
    assert_invariants(storage)


def test_a_savepoint_of_a_tagged_checkpoint(query: Query, tmp_path: Path) -> None:
    tag_checkpoint(query.storage, 4, "a")
    query.run(range(6, 12))
    take_savepoint(query.storage, LocalStorage(tmp_path / "s"), 4)
    assert verify(LocalStorage(tmp_path / "s")).is_whole


def test_a_rollback_takes_later_tags_with_it(query: Query) -> None:
    storage = query.storage
    tag_checkpoint(storage, 4, "early")
    query.run(range(6, 8))
    tag_checkpoint(storage, 9, "late")
    query.run(range(8, 12))
    tag_checkpoint(storage, 12, "last")
    assert ids(storage) == [10, 11, 12, 13]
    done = roll_back(storage, 10, force=True, clock=NoClock())
    assert Tags(storage).list() == [Tag("early", 4), Tag("late", 9)]
    assert [name for name in done.moved if name.startswith("ckpt/tags/")] == [Tag("last", 12).file]
    assert_whole(storage, 4)
    assert_whole(storage, 9)
    assert_invariants(storage)
    assert query.restart() == 9
    query.driver.batch(10)
    query.commit(9)
    query.run(range(10, 14))
    assert_whole(storage, 4)
    assert_whole(storage, 9)
    assert_invariants(storage)


def test_a_rollback_moves_what_only_a_later_tag_retained(query: Query) -> None:
    storage = query.storage
    tag_checkpoint(storage, 6, "a")
    query.storage.delete("ckpt/completed/00000000000000000006.json")  # as if it were subsumed
    done = roll_back(storage, 5, force=True, clock=NoClock())
    assert {Tag("a", 6).file, "ckpt/chk-6/_metadata"} <= set(done.moved)
    assert Tags(storage).list() == []
    assert_invariants(storage)


def test_a_failing_request_leaves_no_tag_that_holds_nothing(tmp_path: Path) -> None:
    make_query(tmp_path / "q")
    storage = FaultyStorage(LocalStorage(tmp_path / "q"))
    storage.fail("create", "ckpt/tags/a")
    with pytest.raises(StorageError):
        tag_checkpoint(storage, 5, "a")
    assert Tags(storage).list() == []
