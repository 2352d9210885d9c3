"""After a rollback a query continues from the checkpoint, later files are kept, and earlier drivers are fenced off."""

from __future__ import annotations

import os
import re
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.clock import SystemClock
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.errors import DamagedCheckpointError
from spark_ckpt.location.errors import CheckpointNotFoundError, LocationInUseError
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.messages import Operator
from spark_ckpt.operations.errors import RollbackRefusedError
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.recovery.fence import GRACE_SECONDS
from spark_ckpt.recovery.rollback import Rollback
from spark_ckpt.spark_files.errors import LogFencedError
from spark_ckpt.spark_files.rollbacks import NOT_FINISHED, Rollbacks, marker
from spark_ckpt.storage import LocalStorage, Storage
from tests.storage.faulty import FaultyStorage
from tests.support.clocks import NoClock
from tests.support.driver import Driver, check_rows, located, restore
from tests.support.invariants import assert_invariants, completed_versions
from tests.support.queries import ENDED, Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5. Its driver has ended: no process has its pid."""
    return make_query(tmp_path / "q")


def files(storage: Storage, directory: str = "") -> dict[str, bytes]:
    """Contents of all files below a directory, except of claims, which change, and of what rollbacks leave."""
    assert isinstance(storage, LocalStorage)
    root = Path(storage.location) / directory
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and b'"kind": "claim"' not in file.read_bytes() and file.parent.name != "rollbacks"
    }


def back(query: Query, checkpoint_id: int, *, force: bool = True, dry_run: bool = False) -> Rollback:
    return roll_back(query.storage, checkpoint_id, force=force, dry_run=dry_run, clock=NoClock())


def test_the_query_goes_on_after_the_batch(query: Query) -> None:
    expected = {key: restore(query.storage, located(query.driver, 4, key)) for key in query.driver.subtasks()}
    done = back(query, 5)
    assert (done.checkpoint.batch_id, done.batches, done.checkpoints) == (3, (4, 5), (6, 7))
    assert verify(query.storage, everything=True).restorable == (5, 4)
    assert query.restart() == 4
    assert query.driver.rows == expected
    query.driver.batch(5)
    check_rows(query.driver, query.storage, 5)
    query.commit(4)
    query.run(range(5, 9))
    assert verify(query.storage, everything=True).is_whole
    assert_invariants(query.storage)


def test_nothing_is_lost(query: Query) -> None:
    before = files(query.storage)
    done = back(query, 5)
    aside = files(query.storage, done.rollback_dir)
    left = {name: data for name, data in files(query.storage).items() if not name.startswith(done.rollback_dir)}
    assert left.keys() & aside.keys() == set()
    assert left | aside == before
    assert set(done.moved) == set(aside)
    assert done.size == sum(map(len, aside.values()))
    assert {"offsets/4", "offsets/5", "commits/4", "commits/5", "ckpt/chk-6/_metadata"} < set(aside)
    assert any(name.startswith("ckpt/shared/") for name in aside)


def test_what_was_moved_can_be_moved_back(query: Query) -> None:
    done = back(query, 4)
    for name, data in files(query.storage, done.rollback_dir).items():
        query.storage.write_atomic(name, data)
    assert verify(query.storage, everything=True).restorable == (7, 6, 5, 4)


def test_a_dry_run_changes_nothing(query: Query) -> None:
    before, claims = files(query.storage), len(query.storage.list("ckpt/completed"))
    done = back(query, 5, dry_run=True)
    assert done.dry_run
    assert (done.batches, done.checkpoints) == ((4, 5), (6, 7))
    assert set(done.moved) == {"commits/5", "offsets/5", "commits/4", "offsets/4"}
    assert files(query.storage) == before
    assert len(query.storage.list("ckpt/completed")) == claims


def test_a_batch_that_was_not_committed(query: Query) -> None:
    query.start(6)
    done = back(query, 7)
    assert (done.batches, done.checkpoints, set(done.moved)) == ((6,), (), {"offsets/6"})
    assert query.restart() == 6


def test_what_spark_knows_of_operators_from_later_batches_on(query: Query) -> None:
    for batch in (3, 4):
        described = query.storage.read("state/0/_metadata/metadata").replace(b"v1\n", b"v2\n")
        query.storage.write_atomic(f"state/0/_metadata/v2/{batch}", described)
    done = back(query, 5)
    assert "state/0/_metadata/v2/4" in done.moved
    assert query.storage.exists("state/0/_metadata/v2/3")


def test_the_newest_checkpoint_is_damaged(query: Query) -> None:
    for checkpoint_id in (6, 7):
        query.storage.write_atomic(f"ckpt/chk-{checkpoint_id}/_metadata", b"damaged")
    done = back(query, 5)
    assert query.storage.read(f"{done.rollback_dir}/ckpt/chk-7/_metadata") == b"damaged"
    assert query.restart() == 4
    assert_invariants(query.storage)


def test_state_stays_where_an_earlier_checkpoint_cannot_be_read(query: Query) -> None:
    shared = {file.name for file in query.storage.list("ckpt/shared")}
    query.storage.delete("ckpt/chk-4/_metadata")
    back(query, 5)
    assert {file.name for file in query.storage.list("ckpt/shared")} == shared
    assert not query.storage.exists("ckpt/chk-7/_metadata")


def test_a_checkpoint_that_is_damaged_itself(query: Query) -> None:
    before = files(query.storage)
    query.storage.write_atomic("ckpt/chk-5/_metadata", b"damaged")
    with pytest.raises(DamagedCheckpointError, match=r"spark-ckpt verify .* --all") as caught:
        back(query, 5)
    assert caught.value.checkpoint_id == 5
    assert files(query.storage) == before | {"ckpt/chk-5/_metadata": b"damaged"}


def test_a_checkpoint_that_is_not_there(query: Query) -> None:
    with pytest.raises(CheckpointNotFoundError) as caught:
        back(query, 3)
    assert caught.value.available == (4, 5, 6, 7)


def test_a_batch_that_spark_repeats_anyway(query: Query) -> None:
    query.storage.delete("commits/5")
    with pytest.raises(RollbackRefusedError, match=r"has not committed batch 5 .* rollback .* --id 6$") as caught:
        back(query, 7)
    follow(query, str(caught.value))


def test_a_batch_that_spark_has_forgotten(query: Query) -> None:
    for batch in range(3):
        query.storage.delete(f"offsets/{batch}")
        query.storage.delete(f"commits/{batch}")
    with pytest.raises(RollbackRefusedError, match=r"has purged its log entries of batch 3; .* --id 7$") as caught:
        back(query, 5)
    follow(query, str(caught.value))


@pytest.mark.parametrize(("lost", "newest"), [("offsets/4", 5), ("offsets/5", 6), ("offsets/2", 7), ("commits/3", 7)])
def test_an_entry_that_is_lost_was_not_purged(query: Query, lost: str, newest: int) -> None:
    """What the error names works: another checkpoint, or the entry from a copy."""
    entry = query.storage.read(lost)
    query.storage.delete(lost)
    batch = int(lost.partition("/")[2])
    refused = batch + 2 if lost.startswith("commits") else batch + 3
    if refused > 7:
        refused = 7
    with pytest.raises(RollbackRefusedError, match=rf"{lost}, which Spark has not purged .* --id {newest}$") as caught:
        back(query, refused)
    query.storage.write_atomic(lost, entry)
    assert back(query, refused, dry_run=True).checkpoint.id == refused
    query.storage.delete(lost)
    follow(query, str(caught.value))


def test_no_checkpoint_to_go_back_to(query: Query) -> None:
    for batch in range(5):
        query.storage.delete(f"offsets/{batch}")
    with pytest.raises(RollbackRefusedError, match=r"can go back to none of its checkpoints"):
        back(query, 7)


def test_a_missing_version_names_a_rollback_that_is_possible(query: Query) -> None:
    """Spark repeats batch 4, and the checkpoint of batch 3 is lost. Batch 5, of the newest one, is not committed."""
    for name in ("commits/5", "offsets/5", "commits/4", f"ckpt/completed/{5:020}.json"):
        query.storage.delete(name)
    with pytest.raises(VersionNotFoundError, match=r"version 4 .* are 4 .*, 6 .*, 7 .* --id 4\. ") as caught:
        query.open()
    follow(query, str(caught.value))


def test_a_missing_version_without_a_rollback_that_is_possible(query: Query) -> None:
    for name in ("offsets/1", "offsets/2", "commits/2", "commits/3", "commits/5", "offsets/5", "commits/4"):
        query.storage.delete(name)
    query.storage.delete(f"ckpt/completed/{5:020}.json")
    with pytest.raises(VersionNotFoundError, match="Spark's logs lack the entries for a start after any of them"):
        query._new_driver().trigger(5)


def follow(query: Query, advice: str) -> None:
    """Runs the rollback that an error names, and starts the query."""
    command = re.search(r"spark-ckpt rollback (\S+) --id ([0-9]+)", advice)
    assert command is not None
    assert command[1] == query.storage.location
    done = back(query, int(command[2]))
    assert query.restart() == done.checkpoint.batch_id + 1


def test_states_that_spark_does_not_count(tmp_path: Path) -> None:
    query = make_query(tmp_path, checkpoint_format=2)
    query.storage.write_atomic("commits/3", query.storage.read("commits/4"))
    with pytest.raises(DamagedCheckpointError, match="does not name state"):
        back(query, 5)


class TestDrivers:
    def with_owner(self, tmp_path: Path, host: str, pid: int, log_epoch: int | None = None) -> Query:
        query = Query(LocalStorage(tmp_path / host))
        query.driver.log_epoch = log_epoch
        query.driver.environment = replace(query.driver.environment, host=host, pid=pid, clock=SystemClock())
        query.run(range(6))
        return query

    def test_one_that_runs_here(self, tmp_path: Path) -> None:
        query = self.with_owner(tmp_path, socket.gethostname(), os.getpid())
        before = files(query.storage)
        with pytest.raises(LocationInUseError, match="is running") as caught:
            back(query, 5, force=False)
        assert caught.value.is_known
        assert query.driver.run_id in str(caught.value)
        assert files(query.storage) == before

    def test_one_on_another_host(self, tmp_path: Path) -> None:
        query = self.with_owner(tmp_path, "elsewhere", 1)
        with pytest.raises(LocationInUseError, match="cannot be checked from here") as caught:
            back(query, 5, force=False)
        assert not caught.value.is_known
        assert back(query, 5).checkpoints == (6, 7)
        # The last claim is now the command's own, which does not hold the location.
        assert back(query, 4, force=False).checkpoints == (5, 9)  # of the batch of 5, published once more

    @pytest.mark.parametrize("renames", [True, False])
    def test_one_on_another_host_whose_logs_are_fenced(self, tmp_path: Path, renames: bool) -> None:
        query = self.with_owner(tmp_path, "elsewhere", 1, log_epoch=0)
        clock = NoClock()
        done = roll_back(query.storage if renames else FaultyStorage(query.storage), 5, clock=clock)
        assert done.checkpoints == (6, 7)
        assert (GRACE_SECONDS in clock.slept) != renames
        with pytest.raises(FencedError, match="spark-ckpt rollback"):
            query.run(range(6, 7))

    def test_a_rollback_beside_one_elsewhere_can_be_undone(self, tmp_path: Path) -> None:
        """As docs/operations.md says: the checkpoint of the rollback has a new id, above those that come back."""
        query = self.with_owner(tmp_path, "elsewhere", 1, log_epoch=0)
        done = back(query, 5, force=False)
        for name in done.moved:
            query.storage.write_atomic(name, query.storage.read(f"{done.rollback_dir}/{name}"))
        assert back(query, 7, force=False).checkpoint.batch_id == 5
        assert verify(query.storage, everything=True).is_whole
        assert query.restart() == 6

    def test_one_that_runs_here_and_whose_logs_are_fenced(self, tmp_path: Path) -> None:
        query = self.with_owner(tmp_path, socket.gethostname(), os.getpid(), log_epoch=0)
        with pytest.raises(LocationInUseError, match="is running"):
            back(query, 5, force=False)

    def test_one_that_started_before_the_rollback_and_claims_after_it(self, tmp_path: Path) -> None:
        """Spark has planned its batch from logs that the rollback moved meanwhile."""
        query = self.with_owner(tmp_path, "elsewhere", 1, log_epoch=0)
        back(query, 5, force=False)
        before = len(query.storage.list("ckpt/completed"))
        late = Driver(query.storage.location, operators=query.operators, settings=query.settings, log_epoch=0)
        with pytest.raises(LogFencedError):
            late.trigger(5)
        assert len(query.storage.list("ckpt/completed")) == before
        new = Driver(query.storage.location, operators=query.operators, settings=query.settings, log_epoch=1)
        new.trigger(5)
        assert len(query.storage.list("ckpt/completed")) > before

    def test_one_that_is_gone(self, tmp_path: Path) -> None:
        query = self.with_owner(tmp_path, socket.gethostname(), ENDED)
        assert back(query, 5, force=False).checkpoints == (6, 7)

    def test_one_that_runs_all_the_same_is_shut_out(self, query: Query) -> None:
        job = query.driver.trigger(7)
        acks = [query.driver.make_ack(key, 7) for key in query.driver.subtasks()]
        for ack in acks[:-1]:
            job.acknowledge(ack)
        back(query, 5)
        with pytest.raises(FencedError, match="spark-ckpt rollback"):
            job.acknowledge(acks[-1])
        assert completed_versions(query.storage.location) == [3, 4]
        assert query.restart() == 4


def test_a_location_without_a_log(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path), settings={"store": "standalone", "retained": "4", "inlineThreshold": "0"})
    query.run(range(6))
    done = back(query, 5)
    assert (done.checkpoint.batch_id, done.checkpoints) == (3, (6, 7))
    assert query.storage.exists(f"{done.rollback_dir}/ckpt/chk-7/_metadata")
    assert query.restart() == 4


class KilledError(Exception):
    """Simulates a kill of the command's process."""


def test_it_can_be_interrupted_anywhere_and_repeated(tmp_path: Path) -> None:
    """After a kill before any write, a restart finds a batch with its checkpoint, and so does a repeated rollback."""
    operators = (Operator(0, "stateStoreSave", ("default",), 2),)
    make_query(tmp_path / "q", operators=operators)
    changes = 0
    while True:
        for name in ("restarted", "repeated"):
            shutil.copytree(tmp_path / "q", tmp_path / name)
        if roll_back_until(LocalStorage(tmp_path / "repeated"), changes):
            break
        roll_back_until(LocalStorage(tmp_path / "restarted"), changes)
        assert Query(LocalStorage(tmp_path / "restarted"), operators=operators).restart() in (4, 5, 6)
        repeated = LocalStorage(tmp_path / "repeated")
        roll_back(repeated, 5)
        assert verify(repeated, everything=True).restorable == (5, 4)
        assert Query(repeated, operators=operators).restart() == 4
        for name in ("restarted", "repeated"):
            shutil.rmtree(tmp_path / name)
        changes += 1
    assert changes > 12


def roll_back_until(storage: Storage, changes: int) -> bool:
    """Rolls back until killed after `changes` changes; returns true if the rollback has finished."""
    left = changes

    def count(operation: str, name: str) -> None:
        nonlocal left
        if operation in ("write", "create", "delete"):
            if not left:
                raise KilledError
            left -= 1

    faulty = FaultyStorage(storage)
    faulty.before = count
    try:
        roll_back(faulty, 5, force=True)
    except KilledError:
        return False
    return True


class TestFence:
    """The fence of Spark's logs."""

    def test_each_rollback_counts(self, query: Query) -> None:
        assert Rollbacks.of(query.storage) == Rollbacks(0, ())
        back(query, 6)
        back(query, 5)
        assert Rollbacks.of(query.storage) == Rollbacks(2, ())

    def test_nothing_to_take_back(self, query: Query) -> None:
        """An earlier driver may be about to write the next offsets."""
        back(query, 7)
        assert Rollbacks.of(query.storage) == Rollbacks(1, ())

    def test_an_interrupted_rollback_is_unfinished_until_it_is_repeated(self, query: Query) -> None:
        faulty = FaultyStorage(query.storage)

        def kill(operation: str, name: str) -> None:
            if (operation, name) == ("delete", "offsets/4"):
                raise KilledError

        faulty.before = kill
        with pytest.raises(KilledError):
            roll_back(faulty, 5, force=True, clock=NoClock())
        assert Rollbacks.of(query.storage) == Rollbacks(1, (1,))
        damages = verify(query.storage).damages
        assert [(damage.path, damage.reason.partition(":")[0]) for damage in damages] == [
            (query.storage.describe(marker(1)), NOT_FINISHED)
        ]
        back(query, 5)
        assert Rollbacks.of(query.storage) == Rollbacks(2, ())
        assert verify(query.storage, everything=True).is_whole

    def test_a_rollback_that_is_fenced_off_moves_nothing(self, tmp_path: Path) -> None:
        """Another process has claimed the location while the rollback waited for entries."""
        query = Query(LocalStorage(tmp_path / "q"))
        query.driver.environment = replace(query.driver.environment, host="elsewhere", pid=1)
        query.run(range(6))

        class Claiming(NoClock):
            def sleep(self, seconds: float) -> None:
                if seconds == GRACE_SECONDS:
                    with opened_store(query.storage, {}, "rescale", self) as (store, _):
                        store.recover()
                        store.claim()

        logs = files(query.storage, "offsets") | files(query.storage, "commits")
        with pytest.raises(FencedError):
            roll_back(FaultyStorage(query.storage), 5, force=True, clock=Claiming())  # it does not rename
        assert Rollbacks.of(query.storage) == Rollbacks(1, ())
        assert files(query.storage, "offsets") | files(query.storage, "commits") == logs

    def test_entries_that_a_driver_is_writing_are_deleted_before_the_first_move(self, query: Query) -> None:
        names = ("offsets/.6.8f0c.tmp", "commits/.5.77aa.TID3.tmp")
        for name in names:
            query.storage.write_atomic(name, b"v1")
        faulty, steps = FaultyStorage(query.storage), []

        def note(operation: str, name: str) -> None:
            steps.append(name)
            if name == "offsets/5":
                assert not any(query.storage.exists(name) for name in names)

        faulty.before = note
        done = roll_back(faulty, 5, force=True, clock=NoClock())
        assert steps.index(marker(1)) < min(steps.index(name) for name in names)
        assert "offsets/5" in done.moved
        assert not any(name.endswith(".tmp") for name in done.moved)
