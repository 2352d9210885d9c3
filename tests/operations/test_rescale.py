"""Rescale changes Spark's logs and adds a checkpoint, and leaves all other files alone."""

from __future__ import annotations

import os
import re
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import gcd
from pathlib import Path
from unittest.mock import patch

import pytest

from spark_ckpt.checkpoint import packing
from spark_ckpt.checkpoint.batch import state_ids
from spark_ckpt.checkpoint.errors import StateIdMismatchError, VersionNotFoundError
from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.checkpoint.publish import NewCheckpoint, Publisher
from spark_ckpt.completed import CheckpointRecord, FilesystemCompletedCheckpointStore, Owner
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.location.errors import LocationInUseError
from spark_ckpt.location.listing import list_completed
from spark_ckpt.metadata import loads
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.rescaling.errors import RescaleRefusedError
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.errors import SparkLogEntryExistsError
from spark_ckpt.spark_files.logs import BatchLog
from spark_ckpt.storage import Storage
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.cli import run
from tests.support.invariants import assert_invariants
from tests.support.stopped_query import OFFSETS, QUERY_ID, ROWS, StoppedQuery, blocks, schema

RUNNING = Owner(socket.gethostname(), os.getpid(), "t", QUERY_ID, "run")
ELSEWHERE = Owner("elsewhere", 1, "t", QUERY_ID, "run")


def newest(storage: Storage) -> CheckpointState:
    return read_checkpoint(storage, list_completed(storage).records[-1])


def parallelism(storage: Storage) -> list[int]:
    batch = newest(storage).batch
    assert batch is not None
    return [store.parallelism for store in batch.stores]


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("partitions", [8, 2, 1, 64, 3, 7])
def test_a_checkpoint_and_a_batch_are_added(tmp_path: Path, partitions: int, inline: bool) -> None:
    query = StoppedQuery(tmp_path, inline=inline)
    before = query.files()
    rescaling = rescale(query.storage, partitions)
    state = newest(query.storage)
    assert state.record is not None and state.batch is not None
    assert (rescaling.before, rescaling.after, rescaling.batch_id) == (4, partitions, 7)
    assert (rescaling.from_checkpoint, rescaling.checkpoint_id) == (query.record.id, state.record.id)
    assert rescaling.new_bytes == state.record.new_bytes
    assert (state.batch.batch_id, state.version) == (7, 8)
    assert [(store.parallelism, sum(store.rows)) for store in state.batch.stores] == [(partitions, ROWS)]
    assert state.record.state_bytes == query.record.state_bytes
    assert query.log.offsets(7) == OFFSETS.with_shuffle_partitions(partitions)
    assert query.log.commit(7) == query.commit
    assert query.log.partitions(0) == list(range(max(4, partitions)))
    after = query.files()
    assert {name: after[name] for name in before} == before
    shared = {name for name in after if name.startswith("ckpt/shared/")} - set(before)
    assert len(shared) == inline
    assert_invariants(query.storage)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_number_whose_checkpoint_no_reader_would_accept_is_refused(tmp_path: Path, dry_run: bool) -> None:
    query = StoppedQuery(tmp_path)
    before = query.files()
    with patch.object(packing, "MAX_BYTES", 16 << 10):
        with pytest.raises(RescaleRefusedError) as refused:
            rescale(query.storage, 63, dry_run=dry_run)
        assert query.files() == before
        assert "would belong to 63 partitions" in refused.value.reason
        numbers = re.search(r"that work are ([0-9]+) or ([0-9]+); ([0-9]+) and ([0-9]+) read", refused.value.reason)
        assert numbers is not None
        assert [int(number) for number in numbers.groups()] == [62, 64, 32, 64]
        assert rescale(query.storage, 62).reads == 31
        assert parallelism(query.storage) == [62]
        assert rescale(query.storage, 64).reads == 1
        assert parallelism(query.storage) == [64]


def test_a_refused_number_that_an_earlier_release_has_begun_is_taken_back(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    query.log.add_offsets(5, OFFSETS)
    query.log.add_commit(5, query.commit)
    query.log.add_offsets(7, OFFSETS.with_shuffle_partitions(63))
    with patch.object(packing, "MAX_BYTES", 16 << 10):
        with pytest.raises(RescaleRefusedError, match="take it back first: spark-ckpt rollback") as refused:
            rescale(query.storage, 63)
        command, _, options = refused.value.reason.partition("spark-ckpt ")[2].partition(" ")
        assert run(command, *options.split()).status == 0
        assert rescale(query.storage, 62).after == 62
    assert parallelism(query.storage) == [62]


def test_all_that_is_written_can_be_read_whatever_the_limit(tmp_path: Path) -> None:
    for most in (1 << 10, 4 << 10, 16 << 10):
        query = StoppedQuery(tmp_path / str(most))
        with patch.object(packing, "MAX_BYTES", most):
            for partitions in (63, 37, 6, 48, 11, 64, 3):
                with suppress(RescaleRefusedError):
                    rescale(query.storage, partitions)
                    assert parallelism(query.storage) == [partitions]


def blocks_of_handles(storage: Storage) -> dict[int, int]:
    """Number of blocks in the handles of each subtask of the newest checkpoint."""
    record = list_completed(storage).records[-1]
    metadata = loads(storage.read(f"ckpt/{record.metadata.path}"))
    return Counter(subtask for operator in metadata.operator_states for subtask, *_ in blocks(operator))


@pytest.mark.parametrize("chain", [(7,), (6,), (48,), (7, 6), (6, 48, 7, 63), (7, 4, 6)])
def test_blocks_that_several_partitions_read_are_listed_once(tmp_path: Path, chain: Sequence[int]) -> None:
    """Flink finds each key group exactly once, in its owner, however many partitions share it."""
    query = StoppedQuery(tmp_path)
    before = sum(blocks_of_handles(query.storage).values())
    for partitions in chain:
        rescale(query.storage, partitions)
        after = blocks_of_handles(query.storage)
        assert sum(after.values()) == before
        assert set(after) <= set(range(gcd(partitions, 64))), (
            "the first partition of each residue class has the handles"
        )
        chains = newest(query.storage).table[StoreKey(0, "default")]
        assert all(chains[p].entries for p in range(partitions) if p % gcd(partitions, 64) in after)


def test_the_metadata_says_where_the_sources_are(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    rescale(query.storage, 8)
    state = newest(query.storage)
    assert state.record is not None
    metadata = loads(query.storage.read(f"ckpt/{state.record.metadata.path}"))
    offsets = next(master for master in metadata.master_states if master.name == "spark-offsets")
    assert offsets.payload == query.storage.read("offsets/7")
    sources = [operator for operator in metadata.operator_states if operator.parallelism == 1]
    assert len(sources) == 1  # the second source has no offset yet


def test_statistics_go_on(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    rescale(query.storage, 8)
    rescale(query.storage, 4)
    assert [(stats.batch_id, stats.version) for stats in newest(query.storage).history] == [(6, 7), (7, 8), (8, 9)]


def test_ids_of_states_are_those_of_the_commit(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, names=("dedupe", "globalLimit"), checkpoint_format=2)
    rescale(query.storage, 6)
    batch = newest(query.storage).batch
    assert batch is not None
    ids = query.log.commit(7).state_ids
    assert ids == state_ids(batch)
    assert [len(partitions) for partitions in ids.values()] == [6, 1]
    before = query.commit.state_ids
    assert before is not None
    assert not {tuple(one) for one in before[0]} & {tuple(one) for one in ids[0]}


@pytest.mark.parametrize(
    ("name", "version", "partitions"),
    [("transformWithStateExec", None, 6), ("symmetricHashJoin", 3, 8), ("symmetricHashJoin", 3, 6)],
)
def test_column_families_are_rescaled_to_any_number(
    tmp_path: Path, name: str, version: int | None, partitions: int
) -> None:
    query = StoppedQuery(tmp_path, names=(name,), state_format_version=version)
    rescale(query.storage, partitions)
    assert parallelism(query.storage) == [partitions]


def test_a_limit_stays_one_task(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, names=("stateStoreSave", "globalLimit"))
    rescaling = rescale(query.storage, 8)
    assert [(store.before, store.after) for store in rescaling.stores] == [(4, 8), (1, 1)]
    assert query.log.partitions(1) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        ("stateStoreSave", ["key"], 5),
        ("stateStoreSave", [], 1),
        ("sessionWindowStateStoreSaveExec", ["start"], 1),
        ("sessionWindowStateStoreSaveExec", ["key", "start"], 5),
    ],
)
def test_with_one_partition_the_schema_tells_what_runs_alone(
    tmp_path: Path, name: str, columns: list[str], expected: int
) -> None:
    query = StoppedQuery(tmp_path, names=(name,), offsets=OFFSETS.with_shuffle_partitions(1))
    query.storage.write_atomic("state/0/0/_metadata/schema", schema(columns))
    rescale(query.storage, 5)
    assert parallelism(query.storage) == [expected]


def test_metadata_of_operators_follows_where_spark_keeps_it_by_batch(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, metadata_version=2)
    rescale(query.storage, 9)
    for batch_id, partitions in ((6, 4), (7, 9)):
        metadata = query.log.operator_metadata(0, batch_id)
        assert metadata is not None
        assert metadata.partitions == {"default": partitions}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, inline=True)
    before = query.files()
    planned = rescale(query.storage, 7, dry_run=True)
    assert query.files() == before
    assert planned.checkpoint_id is None
    done = rescale(query.storage, 7)
    assert replace(done, checkpoint_id=None, new_bytes=0) == planned


def test_a_driver_that_runs_is_not_disturbed(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, owner=RUNNING)
    before = query.files()
    for dry_run in (True, False):
        with pytest.raises(LocationInUseError) as refused:
            rescale(query.storage, 8, dry_run=dry_run)
        assert (refused.value.location, refused.value.is_known) == (query.storage.location, True)
    assert query.files() == before
    rescale(query.storage, 8, force=True)
    rescale(query.storage, 4)  # the previous command has ended
    assert parallelism(query.storage) == [4]


def test_a_driver_that_has_ended_on_another_host(tmp_path: Path) -> None:
    """As after each attempt on YARN or Kubernetes: the command needs no force."""
    query = StoppedQuery(tmp_path, owner=ELSEWHERE)
    assert rescale(query.storage, 8, dry_run=True).after == 8
    assert rescale(query.storage, 8).checkpoint_id is not None
    assert parallelism(query.storage) == [8]


def test_a_driver_that_runs_on_another_host_is_fenced(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, owner=ELSEWHERE)
    driver = FilesystemCompletedCheckpointStore(query.storage, ELSEWHERE)
    driver.recover()
    driver.claim()
    driver.check_owner()
    rescaled = rescale(query.storage, 8)
    after = query.files()
    with pytest.raises(SparkLogEntryExistsError):  # as Spark finds the file at its next batch
        query.log.add_offsets(rescaled.batch_id, OFFSETS)
    for use in (driver.check_owner, lambda: driver.add(lambda *_: query.record)):
        with pytest.raises(FencedError):
            use()
    assert query.files() == after


def test_offsets_that_a_driver_has_overwritten_are_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an object store, Spark's own writer may replace the entry of the batch: its input must not count as read."""
    query = StoppedQuery(tmp_path, owner=ELSEWHERE)
    publish = Publisher.publish

    def overwritten(publisher: Publisher, new: NewCheckpoint, now_ms: int) -> CheckpointRecord:
        (tmp_path / "offsets" / "7").write_bytes(replace(OFFSETS, offsets={"0": None, "1": "9"}).encode())
        return publish(publisher, new, now_ms)

    monkeypatch.setattr(Publisher, "publish", overwritten)
    with pytest.raises(SparkLogEntryExistsError, match="offsets/7"):
        rescale(query.storage, 8)
    assert not (tmp_path / "commits" / "7").exists()
    assert newest(query.storage).record == query.record  # as a start of the query repeats the batch from there


def test_progress_counts_stores(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, names=("dedupe", "stateStoreSave", "globalLimit"))
    seen: list[tuple[int, int]] = []
    rescale(query.storage, 8, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


# ---- refusals --------------------------------------------------------------------------------------------------------


def uncommitted(query: StoppedQuery) -> None:
    query.log.add_offsets(7, replace(OFFSETS, offsets={"0": '{"logOffset":4}', "1": None}))


def interrupted(query: StoppedQuery) -> None:
    query.log.add_offsets(7, OFFSETS.with_shuffle_partitions(12))


def batches_in_flight(query: StoppedQuery) -> None:
    query.log.add_offsets(7, OFFSETS)
    query.log.add_offsets(8, OFFSETS)


def nothing_committed(query: StoppedQuery) -> None:
    query.storage.delete("commits/6")


CASES: list[tuple[int, Callable[[StoppedQuery], None], dict[str, object], str]] = [
    (65, lambda query: None, {}, "64 key groups.*choose 1 to 64"),
    (4, lambda query: None, {}, "it has this number of partitions already"),
    (8, uncommitted, {}, "batch 7 has begun but is not committed"),
    (4, uncommitted, {}, "batch 7 has begun but is not committed"),
    (8, interrupted, {}, "a rescale to 12 was interrupted"),
    (8, batches_in_flight, {}, "batches 7 to 8 have begun"),
    (8, nothing_committed, {}, "not committed any batch"),
    (8, lambda query: None, {"names": ("someOperator",)}, "partitioning key of someOperator"),
    (8, lambda query: None, {"offsets": OffsetEntry(1, None, {"0": "{}"})}, "by an old Spark"),
    (
        8,
        lambda query: None,
        {
            "offsets": replace(
                OFFSETS, metadata={"conf": {"spark.sql.streaming.statefulOperator.useStrictDistribution": "false"}}
            )
        },
        "useStrictDistribution is false",
    ),
]


@pytest.mark.parametrize(("partitions", "prepare", "arguments", "reason"), CASES)
def test_what_is_refused_changes_nothing(
    tmp_path: Path, partitions: int, prepare: Callable[[StoppedQuery], None], arguments: dict[str, object], reason: str
) -> None:
    query = StoppedQuery(tmp_path, **arguments)  # type: ignore[arg-type]
    prepare(query)
    before = query.files()
    with pytest.raises(RescaleRefusedError, match=reason) as refused:
        rescale(query.storage, partitions)
    assert (refused.value.location, refused.value.partitions) == (query.storage.location, partitions)
    assert query.files() == before


def test_logs_of_different_runs_are_told(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, checkpoint_format=2)
    query.storage.delete("commits/6")
    other = CommitEntry(2, query.commit.metadata).with_state_ids({0: [["other"]] * 4})
    query.log.add_commit(6, other)
    with pytest.raises(StateIdMismatchError, match="belong to different runs"):
        rescale(query.storage, 8)


def test_a_batch_without_a_checkpoint_is_told(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    query.log.add_offsets(7, OFFSETS)
    query.log.add_commit(7, query.commit)
    with pytest.raises(VersionNotFoundError) as raised:
        rescale(query.storage, 8)
    assert (raised.value.version, raised.value.available) == (8, (7,))


# ---- interruptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("create", "offsets/7"),
        ("create", "ckpt/completed/"),
        ("create", "state/0/_metadata/v2/7"),
        ("write", "ckpt/shared/merged"),
        ("create", "ckpt/chk-"),
        ("create", r"completed/0*4\.json"),
        ("create", "commits/7"),
    ],
)
@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.LOST_ANSWER])
def test_the_same_rescale_again_goes_on(tmp_path: Path, operation: str, name: str, fault: Fault) -> None:
    """A repeated rescale completes an interrupted one; Spark and other rescales treat it as incomplete until then."""
    query = StoppedQuery(tmp_path, inline=True, checkpoint_format=2, metadata_version=2)
    faulty = FaultyStorage(query.storage)
    faulty.fail(operation, name, fault, times=10)
    try:
        rescale(faulty, 6)
    except SparkCkptError:
        assert 7 not in query.log.batches(BatchLog.COMMITS) or fault is Fault.LOST_ANSWER
        if query.log.batches(BatchLog.OFFSETS)[-1] == 7:
            with pytest.raises(RescaleRefusedError, match="a rescale to 6 was interrupted"):
                rescale(query.storage, 5)
        rescale(query.storage, 6)
    else:
        assert fault is Fault.LOST_ANSWER, "nothing has failed"
    assert any(re.search(name, touched) for _, touched in faulty.log)
    assert query.log.offsets(7).shuffle_partitions == 6
    batch = newest(query.storage).batch
    assert batch is not None
    assert query.log.commit(7).state_ids == state_ids(batch)
    assert_invariants(query.storage, orphans=True)


def test_a_commit_in_doubt_keeps_the_checkpoint_that_it_names(tmp_path: Path) -> None:
    """The storage reports "exists" for the rescale's own commit, and fails to read it."""
    query = StoppedQuery(tmp_path, inline=True, checkpoint_format=2, metadata_version=2)
    faulty = FaultyStorage(query.storage)
    faulty.fail("create", "commits/7", Fault.EXISTS_AFTER_DONE)
    faulty.fail("read", "commits/7", times=10)
    with pytest.raises(StorageError, match="commits/7"):
        rescale(faulty, 6)
    batch = newest(query.storage).batch
    assert batch is not None
    assert query.log.commit(7).state_ids == state_ids(batch)
    assert_invariants(query.storage, orphans=True)


def test_a_driver_that_begins_its_next_batch_first_wins(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    faulty = FaultyStorage(query.storage)
    raced: list[str] = []

    def race(operation: str, name: str) -> None:
        if (operation, name) == ("create", "offsets/7") and not raced:
            raced.append(name)
            query.log.add_offsets(7, replace(OFFSETS, offsets={"0": '{"logOffset":4}', "1": None}))

    faulty.before = race
    before = query.files()
    with pytest.raises(SparkLogEntryExistsError):
        rescale(faulty, 8)
    after = query.files()
    del after["offsets/7"]
    assert after == before, "the driver was fenced"


def test_of_two_rescales_at_once_one_counts(tmp_path: Path) -> None:
    """The rescale that commits first wins: its checkpoint, named by Spark's commit, is the newest of its version."""
    query = StoppedQuery(tmp_path, checkpoint_format=2)
    faulty = FaultyStorage(query.storage)
    raced: list[str] = []

    def race(operation: str, name: str) -> None:
        if (operation, name) == ("create", "commits/7") and not raced:
            raced.append(name)
            rescale(query.storage, 8)

    faulty.before = race
    with pytest.raises(SparkLogEntryExistsError, match="commits/7"):
        rescale(faulty, 8)
    batch = newest(query.storage).batch
    assert batch is not None
    assert query.log.commit(7).state_ids == state_ids(batch)
    versions = [record.version for record in list_completed(query.storage).records]
    assert versions == [7, 8], "the checkpoint that does not count is still there"


def test_a_storage_that_does_not_answer_is_named(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    faulty = FaultyStorage(query.storage)
    faulty.fail("list", "commits")
    with pytest.raises(StorageError, match="commits"):
        rescale(faulty, 8)
