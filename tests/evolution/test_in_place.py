"""Evolution in place: rows, schemas, undo, and the end of the process at every write."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt import erase_state, read_state, verify_absent
from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.checkpoint.statistics_state import history_of
from spark_ckpt.completed import CheckpointRecord, RecordFiles
from spark_ckpt.edit import EditRefusedError
from spark_ckpt.evolution.choices import NO_CHOICES, Choices
from spark_ckpt.evolution.errors import EvolutionRefusedError
from spark_ckpt.evolution.in_place import evolve_in_place
from spark_ckpt.evolution.planned_query import PlannedQuery
from spark_ckpt.evolution.result import Evolution
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.gc import collect_garbage
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.evolved import evolutions
from spark_ckpt.spark_files.rollbacks import Rollbacks
from spark_ckpt.storage import LocalStorage, Storage
from tests.edit.hashed_state import HashedState, counts
from tests.evolution.planned import USER, planned
from tests.support.cli import run
from tests.support.clocks import NoClock
from tests.support.invariants import assert_invariants
from tests.support.kills import kills
from tests.support.meanings import function, meaning
from tests.support.s3 import S3
from tests.support.state_location import schema
from tests.support.uploads import copy

COUNT, NAME, TOTAL = function("count(1)"), function("first(0.name)", ("name",)), function("sum(0.v)")
OLD = meaning(("0.user",), (COUNT, NAME))
CHANGED = planned(USER, schema(sum="long", count="long"), ("0.user",), (TOTAL, COUNT))
CHOICES = Choices(functions={"sum(v)": None})


def evolved(storage: Storage, query: PlannedQuery = CHANGED, choices: Choices = CHOICES, **options: Any) -> Evolution:
    location = CheckpointLocation(storage.location, storage, None)
    earlier = replace(query, meaning=options.pop("old", OLD))
    return evolve_in_place(
        location, lambda conf: query, choices, plan_earlier=lambda conf: earlier, force=True, clock=NoClock(), **options
    )


def rows_in(location: str, **which: Any) -> dict[str, tuple[Any, ...]]:
    rows = read_state(location, **which).to_arrow().to_pylist()
    return {row["key"]["user"]: tuple(row["value"].values()) for row in rows}


def records(storage: Storage) -> list[CheckpointRecord]:
    found = sorted(RecordFiles(storage).read_each().items())
    return [record for _, record in found if isinstance(record, CheckpointRecord)]


@pytest.fixture
def query(tmp_path: Path) -> HashedState:
    return counts(tmp_path / "q", users=6)


def test_rows_are_those_of_the_changed_query(query: HashedState) -> None:
    before = rows_in(query.path)
    done = evolved(query.storage)
    assert rows_in(query.path) == {user: (None, number) for user, (number, _) in before.items()}
    assert (done.batch_id, done.stores[0].rows) == (5, sum(query.records[-1].operators[0].rows for _ in (1,)))
    assert verify(query.storage, everything=True).is_whole
    assert_invariants(query.storage, orphans=True)


def test_each_checkpoint_is_read_with_its_own_schema(query: HashedState, tmp_path: Path) -> None:
    before = rows_in(query.path)
    done = evolved(query.storage)
    assert rows_in(query.path, id=done.from_checkpoint) == before
    savepoint = LocalStorage(tmp_path / "savepoint")
    take_savepoint(query.storage, savepoint, done.from_checkpoint)
    assert rows_in(str(tmp_path / "savepoint")) == before
    later = LocalStorage(tmp_path / "later")
    take_savepoint(query.storage, later)
    assert rows_in(str(tmp_path / "later")) == rows_in(query.path)


def test_records_from_then_on_are_refused_by_earlier_releases(query: HashedState) -> None:
    evolved(query.storage)
    newest = records(query.storage)[-1]
    assert newest.evolved == 3
    text = json.loads(query.storage.read(RecordFiles(query.storage).name(newest.id)))
    assert text["features"] == ["evolved-schemas"]


def test_a_rollback_puts_the_schemas_back(query: HashedState) -> None:
    before, files = rows_in(query.path), _spark_files(query)
    done = evolved(query.storage)
    assert _spark_files(query) != files
    roll_back(query.storage, done.from_checkpoint, force=True)
    assert rows_in(query.path) == before
    assert _spark_files(query) == files
    assert evolutions(query.storage) == []
    assert verify(query.storage).is_whole
    assert evolved(query.storage).checkpoint_id is not None


def test_a_proof_of_absence_needs_rows_of_one_type(query: HashedState) -> None:
    """Rows from the other side of an evolution are of other types, so a search in them would find nothing."""
    done = evolved(query.storage)
    user = pa.table({"user": ["u1"]})
    with pytest.raises(EditRefusedError, match="other side of an evolution"):
        verify_absent(query.path, user)
    roll_back(query.storage, done.from_checkpoint, force=True)
    with pytest.raises(EditRefusedError, match="other side of an evolution"):
        verify_absent(query.path, user)
    evolved(query.storage)
    erase_state(query.path, user, purge_files=True)
    assert evolutions(query.storage) == []
    assert verify_absent(query.path, user).traces == ()
    assert not any(b"u1" in data for name, data in query.files().items() if name.startswith(("ckpt/", "rolled-back/")))
    assert_invariants(query.storage)
    assert verify(query.storage).is_whole


def _spark_files(query: HashedState) -> dict[str, bytes]:
    return {name: data for name, data in query.files().items() if name.startswith(("state/", "sources/"))}


def test_two_evolutions_and_the_way_back_over_both(query: HashedState) -> None:
    before, files = rows_in(query.path), _spark_files(query)
    first = evolved(query.storage)
    again = planned(USER, schema(count="long"), ("0.user",), (COUNT,))
    second = evolved(query.storage, again, NO_CHOICES, old=CHANGED.meaning)
    assert [each.batch_id for each in evolutions(query.storage)] == [3, 5]
    assert rows_in(query.path, id=first.from_checkpoint) == before
    assert rows_in(query.path, id=second.from_checkpoint)["u0"] == (None, before["u0"][0])
    assert rows_in(query.path)["u0"] == (before["u0"][0],)
    roll_back(query.storage, first.from_checkpoint, force=True)
    assert (rows_in(query.path), _spark_files(query)) == (before, files)


def test_garbage_collection_deletes_schemas_that_no_checkpoint_needs(query: HashedState) -> None:
    done = evolved(query.storage)
    collect_garbage(query.storage, grace_seconds=0)
    assert len(evolutions(query.storage)) == 1
    for record in records(query.storage):
        if record.id != done.checkpoint_id:
            query.storage.delete(RecordFiles(query.storage).name(record.id))
    collected = collect_garbage(query.storage, grace_seconds=0)
    assert any(orphan.path.startswith("evolved/3/") for orphan in collected.orphans)
    assert evolutions(query.storage) == []


def test_a_dry_run_writes_nothing(query: HashedState) -> None:
    before = query.files()
    assert evolved(query.storage, dry_run=True).checkpoint_id is None
    assert query.files() == before


def test_without_a_recorded_meaning_the_earlier_query_is_asked_for(query: HashedState) -> None:
    location = CheckpointLocation(query.path, query.storage, None)
    with pytest.raises(EvolutionRefusedError, match="--earlier-query"):
        evolve_in_place(location, lambda conf: CHANGED, CHOICES, force=True, clock=NoClock())


def test_with_nothing_to_change_nothing_is_written(query: HashedState) -> None:
    same = planned(USER, schema(count="long", name="string"), ("0.user",), (COUNT, NAME))
    before = query.files()
    assert evolved(query.storage, same, NO_CHOICES).batch_id is None
    assert {n: d for n, d in query.files().items() if "rollbacks" not in n} == before


@pytest.mark.parametrize("checkpoint_format", [pytest.param(1, marks=pytest.mark.long), 2])
def test_killed_at_any_write_it_is_the_old_query_or_the_new_one_or_does_not_start(
    tmp_path: Path, checkpoint_format: int
) -> None:
    places, killed = count(), 0

    def location() -> LocalStorage:
        made = counts(tmp_path / str(next(places)), users=6, checkpoint_format=checkpoint_format)
        made.storage.write_atomic("sources/0/0", b"v1\n1700000000000")
        return made.storage

    moved = planned(USER, schema(sum="long", count="long"), ("0.user",), (TOTAL, COUNT), sources=("rate",))
    choices = replace(CHOICES, sources={0: None})
    want = {user: (None, number) for user, (number, _) in rows_in(location().location).items()}
    for _, storage in kills(lambda storage: evolved(storage, moved, choices), location):
        killed += 1
        unfinished = Rollbacks.of(storage).unfinished
        if not unfinished:
            rows = rows_in(storage.location)
            assert rows == want or all(len(row) == 2 and row[0] is not None for row in rows.values())
            assert verify(storage).is_whole
        evolved(storage, moved, choices)
        assert rows_in(storage.location) == want
        assert Rollbacks.of(storage).unfinished == ()
        assert storage.list("sources/0") == []
        assert verify(storage).is_whole
        assert_invariants(storage, orphans=True)
        assert rows_in(storage.location, id=records(storage)[-2].id)["u0"][0] is not None
    assert killed > 15


def test_killed_at_any_write_a_rollback_over_an_evolution_is_repeated(tmp_path: Path) -> None:
    places, killed = count(), 0

    def location() -> LocalStorage:
        made = counts(tmp_path / str(next(places)), users=6)
        evolved(made.storage)
        return made.storage

    earlier = counts(tmp_path / "earlier", users=6)
    want, last = rows_in(earlier.path), earlier.records[-1].id
    for _, storage in kills(lambda storage: roll_back(storage, last, force=True, clock=NoClock()), location):
        killed += 1
        roll_back(storage, last, force=True, clock=NoClock())
        assert rows_in(storage.location) == want
        assert evolutions(storage) == []
        assert verify(storage).is_whole
    assert killed > 10


def test_the_history_has_the_command(query: HashedState) -> None:
    evolved(query.storage)
    *_, newest = history_of(CheckpointLocation(query.path, query.storage, None).find().metadata) or ()
    assert newest.operation == "evolve"
    assert "completed (evolve)" in run("history", query.path).stdout


def test_a_meaning_is_recorded(query: HashedState) -> None:
    evolved(query.storage)
    found = CheckpointLocation(query.path, query.storage, None).find()
    recorded = spark_batch_of(found.metadata).meaning
    assert recorded is not None
    assert QueryMeaning.decode(recorded) == CHANGED.meaning


def test_on_s3_it_is_as_on_a_local_disk(query: HashedState, s3: S3) -> None:
    place = f"{s3.url}/q"
    copy(query.directory, place)
    storage = CheckpointLocation.open(place).storage
    done, local = evolved(storage), evolved(query.storage)
    assert (done.stores, done.batch_id) == (local.stores, local.batch_id)
    assert rows_in(place) == rows_in(query.path)
    assert rows_in(place, id=done.from_checkpoint) == rows_in(query.path, id=local.from_checkpoint)
    roll_back(storage, done.from_checkpoint, force=True, clock=NoClock())
    assert evolutions(storage) == []
    assert verify(storage).is_whole
