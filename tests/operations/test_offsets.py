"""A move of offsets adds batches without input, and changes nothing else."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.checkpoint.sources import sources_of
from spark_ckpt.completed import Owner
from spark_ckpt.location.errors import LocationInUseError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.listing import list_completed
from spark_ckpt.operations.errors import OffsetsRefusedError
from spark_ckpt.operations.offsets import MovedSource, move_offsets
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.spark_files.rollbacks import Rollbacks
from spark_ckpt.spark_files.source_positions import positions_of
from spark_ckpt.storage import Storage
from tests.support.clocks import NoClock
from tests.support.invariants import assert_invariants
from tests.support.kills import kills
from tests.support.stopped_query import OFFSETS, QUERY_ID, ROWS, StoppedQuery

BACK, ON, ANY = {"0": '{"logOffset":-1}'}, {"0": '{"logOffset":4}'}, {"1": '{"t":{"0":3}}'}
RUNNING = Owner(socket.gethostname(), os.getpid(), "t", QUERY_ID, "run")
ELSEWHERE = Owner("elsewhere", 1, "t", QUERY_ID, "run")


def newest(storage: Storage) -> CheckpointState:
    return read_checkpoint(storage, list_completed(storage).records[-1])


def moved_query(directory: Path, **arguments: object) -> StoppedQuery:
    query = StoppedQuery(directory, **arguments)  # type: ignore[arg-type]
    query.storage.write_atomic("sources/0/4", b"v1\n")
    query.log.add_offsets(5, OFFSETS)
    query.log.add_commit(5, query.commit)
    return query


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("checkpoint_format", [1, 2])
@pytest.mark.parametrize(("positions", "batches"), [(BACK, 2), (ON, 1), (ANY, 2)])
def test_batches_without_input_are_added(
    tmp_path: Path, positions: dict[str, str], batches: int, checkpoint_format: int, inline: bool
) -> None:
    query = moved_query(tmp_path, checkpoint_format=checkpoint_format, inline=inline)
    before = query.files()
    moved = move_offsets(query.storage, positions)
    last = 6 + batches
    (name,) = positions
    assert moved.sources == (MovedSource(name, OFFSETS.offsets[name], positions[name]),)
    assert (moved.batches, moved.batch_id, moved.from_checkpoint) == (batches, last, query.record.id)
    expected = replace(OFFSETS, offsets={**OFFSETS.offsets, **positions})
    for batch in range(7, last + 1):
        assert query.log.offsets(batch) == expected
        assert query.log.commit(batch).metadata["nextBatchWatermarkMs"] == 9
    state = newest(query.storage)
    assert state.record is not None and state.batch is not None
    assert (state.record.id, state.batch.batch_id, state.version) == (moved.checkpoint_id, last, last + 1)
    assert [sum(store.rows) for store in state.batch.stores] == [ROWS]
    if checkpoint_format == 2:
        ids = query.log.commit(last).state_ids
        assert ids is not None
        assert [each for (each,) in ids[0]] == [chain.state_id for chains in state.table.values() for chain in chains]
    found = CheckpointLocation.open(str(tmp_path)).find()
    sources = {each.name: each.positions for each in sources_of(found.metadata, spark_batch_of(found.metadata))}
    assert sources[name] == positions_of(positions[name])
    after = query.files()
    assert {each: after[each] for each in before} == before
    assert {each.partition("/")[0] for each in after.keys() - before.keys()} == {"ckpt", "offsets", "commits"}
    assert_invariants(query.storage)
    assert verify(query.storage).is_whole
    assert Rollbacks.of(query.storage).unfinished == ()


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    query = moved_query(tmp_path)
    before = query.files()
    moved = move_offsets(query.storage, BACK, dry_run=True)
    assert (moved.checkpoint_id, moved.batches, moved.batch_id) == (None, 2, 8)
    assert query.files() == before


@pytest.mark.parametrize(
    ("positions", "reason"),
    [
        ({"2": "5"}, "the query has no source 2; its sources are 0, 1"),
        ({"0": '{"logOffset":7}'}, "entries 0 to 4"),
        ({"0": '{"logOffset":3}'}, "at this position already"),
        ({}, "at this position already"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, positions: dict[str, str], reason: str) -> None:
    query = moved_query(tmp_path)
    before = query.files()
    with pytest.raises(OffsetsRefusedError, match=reason):
        move_offsets(query.storage, positions)
    assert query.files() == before


def test_a_batch_that_has_begun_must_be_finished_first(tmp_path: Path) -> None:
    query = moved_query(tmp_path)
    query.log.add_offsets(7, OFFSETS)
    with pytest.raises(OffsetsRefusedError, match="batch 7 has begun but is not committed"):
        move_offsets(query.storage, BACK)


def test_a_running_driver_stops_the_move(tmp_path: Path) -> None:
    query = moved_query(tmp_path / "here", owner=RUNNING)
    with pytest.raises(LocationInUseError):
        move_offsets(query.storage, BACK)
    elsewhere = moved_query(tmp_path / "there", owner=ELSEWHERE)
    with pytest.raises(LocationInUseError):
        move_offsets(elsewhere.storage, BACK)
    assert move_offsets(elsewhere.storage, BACK, force=True, clock=NoClock()).checkpoint_id is not None


def test_a_rollback_takes_the_move_back(tmp_path: Path) -> None:
    query = moved_query(tmp_path)
    moved = move_offsets(query.storage, BACK)
    roll_back(query.storage, moved.from_checkpoint, force=True)
    assert SparkBatches.of(query.log).last_committed == 6
    assert query.log.offsets(6) == OFFSETS
    assert move_offsets(query.storage, ON).batch_id == 7
    assert verify(query.storage).is_whole


@pytest.mark.parametrize("positions", [BACK, ON])
def test_killed_at_any_write_it_leaves_the_old_query_or_one_that_does_not_start(
    tmp_path: Path, positions: dict[str, str]
) -> None:
    places, killed = count(), 0
    for _, storage in kills(
        lambda faulty: move_offsets(faulty, positions),
        lambda: moved_query(tmp_path / str(next(places))).storage,
    ):
        killed += 1
        log = SparkLog(storage)
        batches = SparkBatches.of(log)
        if Rollbacks.of(storage).unfinished:
            with pytest.raises(OffsetsRefusedError, match="'spark-ckpt offsets' has not finished"):
                move_offsets(storage, positions, dry_run=True)
        else:
            assert batches.started[-1] == batches.last_committed
            assert list_completed(storage).records[-1].batch_id == batches.last_committed
        if Rollbacks.of(storage).unfinished or batches.last_committed == 6:
            move_offsets(storage, positions, force=True, clock=NoClock())
        batches = SparkBatches.of(log)
        assert batches.started[-1] == batches.last_committed == (8 if positions is BACK else 7)
        assert log.offsets(batches.last_committed).offsets == {**OFFSETS.offsets, **positions}
        assert Rollbacks.of(storage).unfinished == ()
        assert verify(storage).is_whole
        assert_invariants(storage, orphans=True)
    assert killed > 6


def test_an_interrupted_rollback_comes_first(tmp_path: Path) -> None:
    query = moved_query(tmp_path)
    query.storage.write_atomic("ckpt/rollbacks/00000000000000000001.json", b'{"format":1,"batch_id":6,"attempt":"a"}')
    with pytest.raises(OffsetsRefusedError, match="a rollback, or the undo of an import, has not finished"):
        move_offsets(query.storage, BACK)
