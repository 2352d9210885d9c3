"""A mirror has whole checkpoints only, whatever happens to its process and at the source."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.completed import CheckpointRecord, RecordFiles
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.location.listing import list_completed
from spark_ckpt.location.snapshot import find_record
from spark_ckpt.location.tags import Tags
from spark_ckpt.messages import Operator
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.mirror.errors import MirrorDivergedError, NotAMirrorError
from spark_ckpt.operations.mirror.following import LocationMirror
from spark_ckpt.operations.mirror.note import MirrorNote
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.tagging import tag_checkpoint
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.logs import BatchLog, SparkLog
from spark_ckpt.spark_files.rollbacks import begin, finish
from spark_ckpt.storage import LocalStorage, Storage
from tests.support.clocks import NoClock
from tests.support.driver import check_rows
from tests.support.invariants import assert_invariants
from tests.support.kills import kills
from tests.support.locations import LocationBuilder
from tests.support.queries import Query, RescalableQuery, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5."""
    return make_query(tmp_path / "q")


@pytest.fixture
def target(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "mirror")


def mirror_of(query: Query, target: Storage, **options: Any) -> LocationMirror:
    return LocationMirror.open(query.storage, target, **options)


def batches_in(storage: Storage) -> list[int]:
    return [record.batch_id for record in list_completed(storage).records]


def assert_continues(target: Storage, batch: int) -> None:
    """A query starts on a mirror after a batch, and has its rows."""
    query = Query(target)
    assert query.restart() == batch + 1
    query.driver.batch(batch + 2, [])
    check_rows(query.driver, target, batch + 2)


def test_the_newest_checkpoint_is_whole_and_a_query_continues_from_it(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target)
    copied = mirror.step()
    assert copied is not None
    assert (copied.source_id, copied.checkpoint.batch_id, copied.is_held) == (7, 5, False)
    assert mirror.step() is None
    assert batches_in(target) == [5]
    assert verify(target, everything=True).is_whole
    assert_invariants(target)
    assert SparkLog(target).query_id() == SparkLog(query.storage).query_id()
    assert_continues(target, 5)
    query.run(range(6, 7))
    with pytest.raises(FencedError, match="has taken over"):
        mirror.step()


def test_it_follows_and_keeps_as_many_checkpoints_as_told(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target, retained=2)
    sizes = []
    for batch in range(6, 16):
        copied = mirror.step()
        assert copied is not None
        assert copied.checkpoint.batch_id == batch - 1
        sizes.append(copied.files)
        assert verify(target, everything=True).is_whole
        assert_invariants(target)
        query.run(range(batch, batch + 1))
    assert batches_in(target) == [13, 14]
    assert [SparkLog(target).batches(log) for log in BatchLog] == [[12, 13, 14], [13, 14]]
    assert max(sizes[1:]) < sizes[0], "files are copied once"
    assert_continues(target, 14)


def test_the_running_batch_is_repeated_with_the_same_input(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target)
    mirror.step()
    query.start(6)
    assert mirror.step() is None
    assert target.read("offsets/6") == query.storage.read("offsets/6")
    assert_continues(target, 5)


@pytest.mark.parametrize("checkpoint_format", [1, 2])
def test_a_rescale_of_the_running_query_is_followed(
    checkpoint_format: int, tmp_path: Path, target: LocalStorage
) -> None:
    """Its first batch runs: a query on the mirror starts that batch with the new number."""
    query = RescalableQuery(LocalStorage(tmp_path / "q"), checkpoint_format=checkpoint_format)
    query.run(range(6))
    mirror = LocationMirror.open(query.storage, target)
    mirror.step()
    rows = query.all_rows()
    query.rescale(6, 8)
    query.start(6)
    assert mirror.step() is None
    there = RescalableQuery(target, checkpoint_format=checkpoint_format)
    assert there.crash() == 6
    assert there.operators[0].parallelism == 8
    assert there.all_rows() == rows
    there.driver.batch(7)
    check_rows(there.driver, target, 7)


def test_batches_that_it_has_missed_are_no_gap(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target)
    mirror.step()
    query.run(range(6, 12))
    mirror.step()
    assert batches_in(target) == [5, 11]
    assert verify(target, everything=True).is_whole
    assert_continues(target, 11)


def test_a_batch_that_spark_has_not_committed_is_not_there(query: Query, target: LocalStorage) -> None:
    query.run(range(6, 7), commit_last=False)
    mirror = mirror_of(query, target)
    mirror.step()
    assert batches_in(target) == [5]
    query.commit(6)
    mirror.step()
    assert batches_in(target) == [5, 6]


def test_before_the_first_checkpoint_there_is_nothing(tmp_path: Path, target: LocalStorage) -> None:
    query = Query(LocalStorage(tmp_path / "new"))
    mirror = mirror_of(query, target)
    assert mirror.step() is None
    assert mirror.last is None
    query.run(range(1))
    assert mirror.step() is not None


@pytest.mark.parametrize("checkpoint_format", [1, 2])
def test_killed_at_any_write_each_checkpoint_is_whole_or_absent(tmp_path: Path, checkpoint_format: int) -> None:
    places, killed = count(), 0
    query = make_query(tmp_path / "q", checkpoint_format=checkpoint_format)
    begun = tmp_path / "begun"
    first = mirror_of(query, LocalStorage(begun))
    first.step()
    query.run(range(6, 8))
    first.step()
    query.run(range(8, 9))

    def new() -> LocalStorage:
        copy = tmp_path / str(next(places))
        shutil.copytree(begun, copy)
        return LocalStorage(copy)

    def run(storage: Any) -> None:
        LocationMirror.open(query.storage, storage).step()

    for _, storage in kills(run, new):
        killed += 1
        assert verify(storage, everything=True).is_whole
        assert_invariants(storage, orphans=True)
        newest = find_record(storage, None).batch_id
        assert newest in (7, 8)
        run(storage)
        assert find_record(storage, None).batch_id == 8
        assert_invariants(storage)
        assert_continues(storage, 8)
    assert killed > 12


def test_killed_at_any_write_of_the_first_copy_it_begins_again(query: Query, tmp_path: Path) -> None:
    places, killed = count(), 0

    def run(storage: Any) -> None:
        LocationMirror.open(query.storage, storage).step()

    for _, storage in kills(run, lambda: LocalStorage(tmp_path / str(next(places)))):
        killed += 1
        run(storage)
        assert find_record(storage, None).batch_id == 5
        assert_invariants(storage)
        assert_continues(storage, 5)
    assert killed > 12


def test_a_checkpoint_that_is_subsumed_during_the_copy_is_held_by_a_tag(query: Query, target: LocalStorage) -> None:
    batches = iter(range(6, 60))

    class Slow(LocalStorage):
        """Each state file takes as long as three batches of the query."""

        def write_atomic(self, name: str, data: bytes) -> None:
            if name.startswith("ckpt/shared/"):
                for _ in range(3):
                    batch = next(batches)
                    query.run(range(batch, batch + 1))
            super().write_atomic(name, data)

    mirror = mirror_of(query, Slow(target.location))
    copied = mirror.step()
    assert copied is not None
    assert copied.is_held
    assert Tags(query.storage).list() == []
    assert verify(target, everything=True).is_whole
    assert_invariants(target)
    batch = next(batches)
    query.run(range(batch, batch + 1))  # it deletes what the tag has kept
    assert_invariants(query.storage)


def test_a_tag_that_a_killed_process_has_left_goes(query: Query, target: LocalStorage) -> None:
    mirror_of(query, target).step()
    note = MirrorNote.read(target)
    assert note is not None
    tag_checkpoint(query.storage, None, note.tag)
    mirror_of(query, target)
    assert Tags(query.storage).list() == []


def test_a_tagged_checkpoint_of_the_mirror_stays(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target, retained=1)
    mirror.step()
    tag_checkpoint(target, None, "first")
    for batch in range(6, 10):
        query.run(range(batch, batch + 1))
        mirror.step()
    assert batches_in(target) == [9]
    assert verify(target, everything=True).is_whole
    assert_invariants(target)


def test_a_rescale_is_followed(tmp_path: Path, target: LocalStorage) -> None:
    query = make_query(tmp_path / "q", operators=(Operator(0, "stateStoreSave", ("default",), 4, 2),))
    mirror = mirror_of(query, target)
    mirror.step()
    rescale(query.storage, 2, force=True)
    copied = mirror.step()
    assert copied is not None
    assert copied.checkpoint.operators[0].parallelism == 2
    assert SparkLog(target).offsets(6).shuffle_partitions == 2
    assert verify(target, everything=True).is_whole


def test_a_query_that_goes_back_ends_it(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target)
    mirror.step()
    roll_back(query.storage, 5, force=True, clock=NoClock())
    with pytest.raises(MirrorDivergedError, match="rolled back to batch 3, and the mirror has batch 5"):
        mirror.step()
    assert verify(target, everything=True).is_whole
    with pytest.raises(MirrorDivergedError):
        mirror_of(query, target).step()


def test_a_rollback_before_it_began_is_no_concern(query: Query, target: LocalStorage) -> None:
    roll_back(query.storage, 5, force=True, clock=NoClock())
    mirror = mirror_of(query, target)
    mirror.step()
    assert batches_in(target) == [3]


def test_it_waits_for_a_change_to_finish(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target)
    change = begin(query.storage, 5, "edit")
    assert mirror.step() is None
    assert mirror.last is None
    finish(query.storage, change)
    assert mirror.step() is not None
    note = MirrorNote.read(target)
    assert note is not None
    assert note.log_epoch == 1


def test_an_evolution_ends_it(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target)
    mirror.step()
    finish(query.storage, begin(query.storage, 5, "evolve"))
    with pytest.raises(MirrorDivergedError, match="changed by an evolution after batch 5"):
        mirror.step()


def test_a_directory_with_other_files_is_refused(query: Query, target: LocalStorage, tmp_path: Path) -> None:
    target.write_atomic("a", b"")
    with pytest.raises(TargetNotEmptyError):
        mirror_of(query, target)
    other = make_query(tmp_path / "other")
    LocationBuilder(other.storage).query("99999999-2222-3333-4444-555555555555")
    mirrored = LocalStorage(tmp_path / "mirror-of-other")
    mirror_of(other, mirrored)
    with pytest.raises(NotAMirrorError, match="it mirrors another query"):
        mirror_of(query, mirrored)


def test_a_mirror_with_a_query_of_its_own_is_left_alone(query: Query, target: LocalStorage) -> None:
    mirror_of(query, target).step()
    assert_continues(target, 5)
    with pytest.raises(NotAMirrorError, match="a query has started there"):
        mirror_of(query, target)


def test_a_second_process_ends_the_first(query: Query, target: LocalStorage) -> None:
    first, second = mirror_of(query, target), mirror_of(query, target)
    second.step()
    query.run(range(6, 7))
    with pytest.raises(FencedError):
        first.step()
    second.step()
    assert batches_in(target) == [5, 6]
    assert_invariants(target, orphans=True)


def test_ids_of_the_mirror_are_its_own(query: Query, target: LocalStorage) -> None:
    mirror = mirror_of(query, target)
    mirror.step()
    query.run(range(6, 9))
    mirror.step()
    records = RecordFiles(target).read_all()
    assert list(records) == [1, 2, 3]
    assert [isinstance(record, CheckpointRecord) for record in records.values()] == [False, True, True]
    assert records[3].owner.run_id.startswith("spark-ckpt mirror ")
