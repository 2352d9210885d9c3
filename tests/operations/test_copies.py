"""Savepoints and restored locations are complete and independent of their source, and a query continues from them."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.compose import decompose, operator_id_of
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError, StorageError
from spark_ckpt.location.errors import CheckpointNotFoundError, NoCheckpointError, NotCommittedError
from spark_ckpt.location.savepoint import SAVEPOINT_RECORD
from spark_ckpt.messages import Operator
from spark_ckpt.metadata import METADATA_FILE_NAME, load, relative_paths
from spark_ckpt.migrate.spark_copy import copy_query_files
from spark_ckpt.operations.copy import CheckpointCopy
from spark_ckpt.operations.errors import SubsumedDuringCopyError, TargetNotEmptyError
from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage, Storage, resolve
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.driver import check_rows, located
from tests.support.driver import restore as rows_of
from tests.support.invariants import assert_invariants
from tests.support.queries import OPERATORS, Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5."""
    return make_query(tmp_path / "q")


@pytest.fixture
def target(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "moved" / "target")


@pytest.fixture(params=["savepoint", "checkpoint"])
def copied(query: Query, target: LocalStorage, tmp_path: Path, request: pytest.FixtureRequest) -> CheckpointCopy:
    """Location restored from a savepoint, after a move of the savepoint, or directly from a checkpoint."""
    if request.param == "checkpoint":
        done = restore(query.storage, target)
    else:
        take_savepoint(query.storage, LocalStorage(tmp_path / "s"))
        shutil.move(tmp_path / "s", tmp_path / "elsewhere")
        done = restore(LocalStorage(tmp_path / "elsewhere"), target)
    shutil.rmtree(tmp_path / "q")
    return done


def checkpoint_files(storage: Storage) -> dict[str, bytes]:
    return {name: storage.read(name) for name in names_in(storage) if name.startswith("ckpt/")}


def names_in(storage: Storage) -> set[str]:
    root = Path(storage.location)
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


class TestSavepoint:
    def test_has_what_one_checkpoint_needs(self, query: Query, target: LocalStorage) -> None:
        done = take_savepoint(query.storage, target)
        _, table = decompose(load(Path(query.storage.location) / "ckpt" / "chk-7" / "_metadata"))
        shared = {f"ckpt/{entry.path}" for chains in table.values() for chain in chains for entry in chain.entries}
        spark = {name for name in names_in(query.storage) if name.startswith(("sources/", "state/"))}
        logs = {"metadata", "offsets/4", "offsets/5", "commits/5"}
        assert names_in(target) == shared | spark | logs | {"_metadata", SAVEPOINT_RECORD}
        assert (done.checkpoint.id, done.files) == (7, len(names_in(target)))
        assert done.size == sum((Path(target.location) / name).stat().st_size for name in names_in(target))
        for name in names_in(target) - {"_metadata", SAVEPOINT_RECORD}:
            assert target.read(name) == query.storage.read(name)

    def test_its_paths_count_from_its_own_directory(self, query: Query, target: LocalStorage) -> None:
        take_savepoint(query.storage, target)
        paths = set(relative_paths(load(Path(target.location) / METADATA_FILE_NAME)))
        assert paths
        for path in paths:
            assert (Path(target.location) / path).is_file()

    def test_is_verified_like_a_location(self, query: Query, target: LocalStorage) -> None:
        take_savepoint(query.storage, target)
        found = verify(target)
        assert (found.is_whole, found.restorable) == (True, (7,))
        file = next(name for name in names_in(target) if name.startswith("ckpt/shared/"))
        target.write_atomic(file, bytes(len(target.read(file))))
        (verdict,) = verify(target).checkpoints
        assert {damage.path for damage in verdict.damages} == {target.describe(file)}

    def test_one_of_an_earlier_checkpoint(self, query: Query, target: LocalStorage) -> None:
        for batch in (3, 4):
            described = query.storage.read("state/0/_metadata/metadata").replace(b"v1\n", b"v2\n")
            query.storage.write_atomic(f"state/0/_metadata/v2/{batch}", described)
        done = take_savepoint(query.storage, target, 5)
        assert (done.checkpoint.id, done.checkpoint.batch_id) == (5, 3)
        assert {"offsets/2", "offsets/3", "commits/3", "state/0/_metadata/v2/3"} < names_in(target)
        assert not {"offsets/4", "offsets/5", "commits/4", "commits/5", "state/0/_metadata/v2/4"} & names_in(target)

    def test_a_dry_run_writes_nothing(self, query: Query, target: LocalStorage) -> None:
        planned = take_savepoint(query.storage, target, dry_run=True)
        assert (planned.dry_run, planned.checkpoint.id) == (True, 7)
        assert not Path(target.location).exists()
        done = take_savepoint(query.storage, target)
        assert (planned.files, planned.size) == (done.files, done.size)
        assert done.files == len(names_in(target))
        assert done.query_id == planned.query_id == query.driver.query_id

    def test_one_that_was_interrupted_is_none(self, query: Query, target: LocalStorage) -> None:
        take_savepoint(query.storage, target)
        target.delete(SAVEPOINT_RECORD)
        with pytest.raises(NoCheckpointError):
            restore(target, LocalStorage(f"{target.location}-new"))
        with pytest.raises(TargetNotEmptyError, match="delete it first"):
            take_savepoint(query.storage, target)

    def test_damage_is_found(self, query: Query, target: LocalStorage) -> None:
        take_savepoint(query.storage, target)
        record = target.read(SAVEPOINT_RECORD)
        target.write_atomic(SAVEPOINT_RECORD, record[:-40])
        with pytest.raises(DamagedRecordError, match="copy of the savepoint"):
            restore(target, LocalStorage(f"{target.location}-1"))
        target.write_atomic(SAVEPOINT_RECORD, record)
        target.write_atomic(METADATA_FILE_NAME, target.read(METADATA_FILE_NAME)[:-1])
        with pytest.raises(DamagedCheckpointError, match="bytes instead of"):
            restore(target, LocalStorage(f"{target.location}-2"))
        assert [str(damage) for damage in verify(target).checkpoints[0].damages] != []

    def test_only_its_own_checkpoint_can_be_asked_for(self, query: Query, target: LocalStorage) -> None:
        take_savepoint(query.storage, target)
        with pytest.raises(CheckpointNotFoundError) as caught:
            restore(target, LocalStorage(f"{target.location}-new"), 6)
        assert caught.value.available == (7,)

    def test_the_schemas_that_a_source_tracks(self, query: Query, tmp_path: Path) -> None:
        """Delta's option `schemaTrackingLocation` names a directory below the checkpoint location."""
        logs = {
            f"{place}_schema_log_table/{entry}": b'v1\n{"sourceMetadataPath":"file:/old/sources/0","n":1}'
            for place in ("", "a/b/")
            for entry in (0, 1)
        }
        for name, content in {**logs, "a/b/other": b"x", "savepoints/ckpt/_schema_log_x/0": b"x"}.items():
            query.storage.write_atomic(name, content)
        for copied, name in ((take_savepoint, "savepoint"), (restore, "restored")):
            target = LocalStorage(tmp_path / name)
            copied(query.storage, target)
            new = b"/old" if copied is take_savepoint else target.location.encode()
            assert {name: target.read(name) for name in names_in(target) if "_schema_log" in name} == {
                name: content.replace(b"/old", new) for name, content in logs.items()
            }
            assert not target.exists("a/b/other")
        copy_query_files(query.storage, target := LocalStorage(tmp_path / "imported"), 5)
        assert all(f"file:{target.location}/sources/0".encode() in target.read(name) for name in logs)


class TestRestored:
    def test_a_query_goes_on(self, query: Query, target: LocalStorage, copied: CheckpointCopy) -> None:
        expected = query.rows()
        fork = Query(target)
        assert fork.driver.query_id == copied.query_id != query.driver.query_id
        assert fork.restart() == 6
        assert fork.rows() == expected
        fork.driver.batch(7)
        check_rows(fork.driver, target, 7)
        fork.commit(6)
        fork.run(range(7, 10))
        assert verify(target, everything=True).is_whole
        assert_invariants(target)

    def test_it_is_whole_and_has_nothing_else(self, target: LocalStorage, copied: CheckpointCopy) -> None:
        found = verify(target, everything=True)
        assert (found.is_whole, found.restorable) == (True, (7,))
        assert_invariants(target)
        assert copied.files == len(names_in(target))
        assert copied.size == sum(len(target.read(name)) for name in names_in(target))

    def test_operators_are_those_of_the_new_query(self, target: LocalStorage, copied: CheckpointCopy) -> None:
        metadata = load(Path(target.location) / "ckpt" / "chk-7" / "_metadata")
        names = ["source/0", "0/default", "1/left", "1/right"]
        assert {o.operator_id for o in metadata.operator_states} == {operator_id_of(copied.query_id, n) for n in names}

    def test_spark_finds_the_schema_files_in_the_new_place(self, query: Query, target: LocalStorage) -> None:
        there = f"file:{query.storage.location}/state/0/_stateSchema/default/0_x"
        stores = [{"storeName": "default", "numPartitions": 4, "stateSchemaFilePaths": [there, "elsewhere"]}]
        text = json.dumps(
            {"operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"}, "stateStoreInfo": stores}
        )
        for batch in (0, 9):
            query.storage.write_atomic(f"state/0/_metadata/v2/{batch}", f"v2\n{text}".encode())
        restore(query.storage, target)
        (version, line) = target.read("state/0/_metadata/v2/0").decode().split("\n")
        (store,) = json.loads(line)["stateStoreInfo"]
        here = f"file:{target.location}/state/0/_stateSchema/default/0_x"
        assert (version, store["stateSchemaFilePaths"]) == ("v2", [here, "elsewhere"])
        assert not target.exists("state/0/_metadata/v2/9")  # belongs to a batch after the checkpoint

    def test_partitions_have_their_folders(self, target: LocalStorage, copied: CheckpointCopy) -> None:
        for operator in OPERATORS:
            root = Path(target.location) / "state" / str(operator.operator_id)
            folders = {folder.name for folder in root.iterdir() if folder.name.isdigit()}
            assert folders == set(map(str, range(operator.parallelism)))


def test_the_same_query_in_another_place(query: Query, target: LocalStorage) -> None:
    done = restore(query.storage, target, keep_query_id=True)
    assert done.query_id == query.driver.query_id == json.loads(target.read("metadata"))["id"]
    assert target.read("ckpt/chk-7/_metadata") == query.storage.read("ckpt/chk-7/_metadata")


@pytest.mark.parametrize("store", ["filesystem", "standalone"])
@pytest.mark.parametrize("source", ["savepoint", "checkpoint"])
def test_a_dry_run_of_a_restore_counts_what_the_restore_writes(
    tmp_path: Path, target: LocalStorage, source: str, store: str
) -> None:
    query = make_query(tmp_path / "q", settings={"store": store})
    storage: Storage = query.storage
    if source == "savepoint":
        storage = LocalStorage(tmp_path / "s")
        take_savepoint(query.storage, storage)
    planned = restore(storage, target, dry_run=True)
    assert (planned.dry_run, planned.checkpoint.id) == (True, 7)
    assert not Path(target.location).exists()
    done = restore(storage, target)
    assert (planned.files, planned.size) == (done.files, done.size)
    assert done.files == len(names_in(target)) > 0
    assert done.size == sum((Path(target.location) / name).stat().st_size for name in names_in(target))


def test_both_queries_go_on(query: Query, target: LocalStorage) -> None:
    restore(query.storage, target, 6)
    fork = Query(target)
    assert fork.restart() == 5
    query.run(range(6, 9))
    fork.run(range(5, 8))
    for each in (query, fork):
        assert verify(each.storage, everything=True).is_whole
        check_rows(each.driver, each.storage, each.driver.job.history[-1].version)  # type: ignore[union-attr]


def test_a_commit_log_with_states(tmp_path: Path, target: LocalStorage) -> None:
    query = make_query(tmp_path / "q", checkpoint_format=2)
    restore(query.storage, target)
    assert verify(target).is_whole
    query.storage.write_atomic("commits/5", query.storage.read("commits/4"))
    with pytest.raises(DamagedCheckpointError, match="does not name state"):
        restore(query.storage, LocalStorage(f"{target.location}-2"))


def test_a_location_without_a_log(tmp_path: Path, target: LocalStorage) -> None:
    settings = {"store": "standalone", "inlineThreshold": "0"}
    query = make_query(tmp_path / "q", settings=settings)
    savepoint = LocalStorage(tmp_path / "s")
    take_savepoint(query.storage, savepoint)
    restore(savepoint, target)
    assert not target.list("ckpt/completed")
    fork = Query(target, settings=settings)
    assert fork.restart() == 6
    assert fork.rows() == query.rows()


def test_state_inside_the_metadata(tmp_path: Path, target: LocalStorage) -> None:
    query = make_query(tmp_path / "q", settings={}, operators=(Operator(0, "dedupe", ("default",), 2),))
    restore(query.storage, target)
    assert not target.list("ckpt/shared")
    fork = Query(target, settings={}, operators=query.operators)
    fork.restart()
    assert fork.rows() == query.rows()


class TestTheDurablePathOfARestoredCheckpoint:
    files = pytest.mark.parametrize("file", ["chk-7/_metadata$", r"completed/0{19}7\.json"])

    @files
    @pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.EXISTS_AFTER_DONE])
    def test_an_answer_that_gets_lost_changes_nothing(
        self, query: Query, target: LocalStorage, file: str, fault: Fault
    ) -> None:
        restore(query.storage, FaultyStorage(target), keep_query_id=True)
        lossy = FaultyStorage(LocalStorage(f"{target.location}-2"))
        lossy.fail("create", file, fault)
        restore(query.storage, lossy, keep_query_id=True)
        assert [rule.times for rule in lossy.rules] == [0]
        assert names_in(lossy.inner) == names_in(target)
        assert checkpoint_files(lossy.inner) == checkpoint_files(target)

    @files
    def test_what_another_process_creates_there_stays(self, query: Query, target: LocalStorage, file: str) -> None:
        shared = FaultyStorage(target)

        def create_first(operation: str, name: str) -> None:
            if operation == "create" and re.search(file, name):
                target.write_atomic(name, b"of another process")

        shared.before = create_first
        with pytest.raises(TargetNotEmptyError):
            restore(query.storage, shared)
        assert b"of another process" in checkpoint_files(target).values()
        assert not target.list("commits")  # no query starts from it

    def test_the_log_has_the_record_and_no_claim(self, query: Query, target: LocalStorage) -> None:
        restore(query.storage, target)
        assert [file.name for file in target.list("ckpt/completed")] == [f"{7:020d}.json"]


@pytest.mark.parametrize("copy", [take_savepoint, restore])
class TestRefusals:
    def test_a_target_with_something_in_it(self, query: Query, target: LocalStorage, copy: Callable[..., None]) -> None:
        target.write_atomic("note", b"x")
        with pytest.raises(TargetNotEmptyError):
            copy(query.storage, target)
        assert names_in(target) == {"note"}

    def test_the_last_batch_is_not_committed(
        self, query: Query, target: LocalStorage, copy: Callable[..., CheckpointCopy]
    ) -> None:
        query.storage.delete("commits/5")
        with pytest.raises(NotCommittedError) as caught:
            copy(query.storage, target, 7)
        assert (caught.value.checkpoint_id, caught.value.batch_id) == (7, 5)
        assert copy(query.storage, target).checkpoint.id == 6

    def test_no_checkpoint(self, tmp_path: Path, target: LocalStorage, copy: Callable[..., None]) -> None:
        query = Query(LocalStorage(tmp_path / "empty"))
        with pytest.raises(NoCheckpointError):
            copy(query.storage, target)

    def test_a_checkpoint_that_is_not_there(
        self, query: Query, target: LocalStorage, copy: Callable[..., None]
    ) -> None:
        with pytest.raises(CheckpointNotFoundError):
            copy(query.storage, target, 3)

    def test_damaged_state(self, query: Query, target: LocalStorage, copy: Callable[..., None]) -> None:
        key = query.driver.subtasks()[0]
        path = located(query.driver, 6, key).segments[-1].path
        query.storage.write_atomic(f"ckpt/{path}", bytes(len(query.storage.read(f"ckpt/{path}"))))
        with pytest.raises(DamagedCheckpointError, match="as damaged as the original") as caught:
            copy(query.storage, target)
        assert caught.value.path == target.describe(f"ckpt/{path}")
        assert not target.exists(SAVEPOINT_RECORD)
        assert not target.exists("commits/5")

    def test_missing_state(self, query: Query, target: LocalStorage, copy: Callable[..., None]) -> None:
        path = located(query.driver, 6, query.driver.subtasks()[0]).segments[-1].path
        query.storage.delete(f"ckpt/{path}")
        with pytest.raises(DamagedCheckpointError) as caught:
            copy(query.storage, target)
        assert caught.value.path == query.storage.describe(f"ckpt/{path}")

    def test_a_query_that_goes_on(
        self, query: Query, target: LocalStorage, copy: Callable[..., CheckpointCopy]
    ) -> None:
        """If the checkpoint is subsumed during the copy, a newer one is copied instead."""
        running = FaultyStorage(query.storage)

        def go_on(operation: str, name: str) -> None:
            if operation == "read" and name.startswith("ckpt/shared/") and not running.rules:
                running.fail("never", "never")
                query.run(range(6, 18))

        running.before = go_on
        done = copy(running, target)
        assert done.checkpoint.batch_id == 17
        assert verify(target).is_whole
        _, table = decompose(load(Path(query.storage.location) / "ckpt" / f"chk-{done.checkpoint.id}" / "_metadata"))
        shared = {f"ckpt/{entry.path}" for chains in table.values() for chain in chains for entry in chain.entries}
        assert {name for name in names_in(target) if name.startswith("ckpt/shared/")} == shared

    def test_a_query_that_is_faster(self, query: Query, target: LocalStorage, copy: Callable[..., None]) -> None:
        running = FaultyStorage(query.storage)
        batch = 6

        def go_on(operation: str, name: str) -> None:
            nonlocal batch
            if operation == "read" and name.endswith("/_metadata") and "chk-" in name:
                query.run(range(batch, batch + 5))
                batch += 5

        running.before = go_on
        with pytest.raises(SubsumedDuringCopyError, match="retained"):
            copy(running, target)

    def test_a_disk_that_is_full(self, query: Query, target: LocalStorage, copy: Callable[..., None]) -> None:
        full = FaultyStorage(target)
        full.fail("write", "_metadata$")
        full.fail("create", "_metadata$")
        with pytest.raises(StorageError):
            copy(query.storage, full)
        assert not target.exists(SAVEPOINT_RECORD)
        assert not target.exists("ckpt/completed/00000000000000000007.json")


def test_the_state_comes_from_the_new_place(query: Query, target: LocalStorage) -> None:
    """No path in the copy refers to the source."""
    restore(query.storage, target)
    fork = Query(target)
    fork.restart()
    for key in fork.driver.subtasks():
        for segment in located(fork.driver, 6, key).segments:
            assert segment.path is None or target.exists(f"ckpt/{segment.path}")
        assert rows_of(target, located(fork.driver, 6, key)) == fork.driver.rows[key]


def test_another_file_system(query: Query) -> None:
    savepoint, target = (resolve(f"memory://{uuid.uuid4().hex}") for _ in range(2))
    take_savepoint(query.storage, savepoint)
    restore(savepoint, target)
    assert verify(savepoint).is_whole
    fork = Query(target)
    assert fork.restart() == 6
    assert fork.rows() == query.rows()
    roll_back(target, 7, force=True)
    assert {entry.name for entry in target.list("state/0") if entry.is_directory} >= {"0", "1", "2", "3"}
