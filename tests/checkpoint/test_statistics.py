from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus, Spread, StateSize, StatsHistory
from spark_ckpt.checkpoint.statistics_state import (
    SPARK_HISTORY,
    SPARK_SUBTASKS,
    encode_history,
    encode_subtasks,
    history_of,
    subtasks_of,
)
from spark_ckpt.coordinator.failures import Abort, FailureReason
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.statistics import stats_of_completed, stats_of_failed, stats_of_subtasks
from spark_ckpt.errors import CheckpointError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import NO_BLOCKS, SegmentRef
from spark_ckpt.messages import Ack, Operator, Task
from spark_ckpt.metadata import CheckpointMetadata, MasterState, load
from spark_ckpt.storage import LocalStorage
from tests.support.driver import Driver, faulty_environment

TRIGGERED = 1_700_000_000_000


def pending(*acks: tuple[int, int, int]) -> PendingCheckpoint:
    """Checkpoint of four subtasks; an ack is (ms after the trigger, µs of the snapshot, µs of the write)."""
    checkpoint = PendingCheckpoint([Operator(3, "dedupe", ("default",), 4)], 8, 9, TRIGGERED)
    for partition, (arrived, snapshot, write) in enumerate(acks):
        ack = Ack(
            job="job",
            subtask=SubtaskKey(3, "default", partition),
            batch_id=8,
            version=9,
            state_id=f"{partition:032x}",
            task=Task(1, 0, partition, 0, executor=f"executor-{partition}"),
            rows=1,
            delta=SegmentRef(9, 9, NO_BLOCKS, 0),
            timings_us={"snapshot": snapshot, "write": write},
        )
        checkpoint.acknowledge(ack, TRIGGERED + arrived)
    return checkpoint


def completed(checkpoint: PendingCheckpoint, checkpoint_id: int, size: StateSize) -> CheckpointStats:
    return stats_of_completed(checkpoint, checkpoint_id, size, stats_of_subtasks(checkpoint))


FOUR = ((50, 100, 9_000), (20, 300, 1_000), (90, 200, 40_000), (70, 400, 2_000))


def metadata_with(payload: bytes, version: int = 1) -> CheckpointMetadata:
    return CheckpointMetadata(1, (MasterState(SPARK_HISTORY, payload, version),))


def test_what_the_subtasks_took() -> None:
    stats = completed(pending(*FOUR), 5, StateSize(1000, 100, 12))
    assert (stats.status, stats.checkpoint_id, stats.acks, stats.expected) == (CheckpointStatus.COMPLETED, 5, 4, 4)
    assert stats.duration_ms == 90
    subtasks = stats.subtasks
    assert subtasks is not None
    assert subtasks.snapshot_us == Spread(100, 250, 400)
    assert subtasks.write_us == Spread(1_000, 13_000, 40_000)
    assert subtasks.start_delay_ms == Spread(19, 44, 68)
    assert [(slow.subtask.partition, slow.executor) for slow in subtasks.slowest] == [
        (2, "executor-2"),
        (3, "executor-3"),
        (0, "executor-0"),
    ]


def test_a_clock_that_was_set_back_makes_nothing_negative() -> None:
    stats = completed(pending((-5000, 1, 1)), 5, StateSize(0, 0, 0))
    assert stats.duration_ms == 0
    assert stats.subtasks is not None
    assert stats.subtasks.start_delay_ms == Spread(0, 0, 0)


def test_one_that_failed_without_an_ack() -> None:
    stats = stats_of_failed(pending(), Abort(FailureReason.EXPIRED, "too late"), TRIGGERED + 7)
    assert (stats.status, stats.acks, stats.duration_ms, stats.subtasks) == (CheckpointStatus.FAILED, 0, 7, None)
    assert stats.detail == "expired: too late"


@pytest.mark.parametrize(
    "stats",
    [
        completed(pending(*FOUR), 5, StateSize(1000, 100, 12)),
        replace(completed(pending(*FOUR), 5, StateSize(0, 0, 0)), completing_ms=0, failures={"storage": 2}),
        stats_of_failed(pending(FOUR[0]), Abort(FailureReason.FENCED, "\u00fc"), TRIGGERED + 7),
        stats_of_failed(pending(), Abort(FailureReason.SHUTDOWN, ""), TRIGGERED),
    ],
)
def test_statistics_are_read_as_they_were_written(stats: CheckpointStats) -> None:
    assert history_of(metadata_with(encode_history([stats, stats]))) == (stats, stats)


def test_an_entry_takes_a_few_hundred_bytes() -> None:
    checkpoint = completed(pending(*FOUR), 10**6, StateSize(10**12, 10**9, 10**9))
    assert len(encode_history([checkpoint])) < 550
    failed = stats_of_failed(pending(*FOUR), Abort(FailureReason.FENCED, "x" * 5000), TRIGGERED)
    assert len(encode_history([failed])) < 800


def test_what_each_subtask_took() -> None:
    subtasks = stats_of_subtasks(pending(*FOUR))
    assert [(stats.subtask.partition, stats.start_delay_ms) for stats in subtasks] == [
        (1, 19),
        (0, 41),
        (3, 68),
        (2, 50),
    ]
    state = MasterState(SPARK_SUBTASKS, encode_subtasks(subtasks), 1)
    assert subtasks_of(CheckpointMetadata(1, (state,))) == tuple(subtasks)
    assert subtasks_of(CheckpointMetadata(1, (replace(state, version=2),))) is None
    assert subtasks_of(CheckpointMetadata(1)) is None


@pytest.mark.parametrize(
    "payload", [b"", b"[7]", b"[[]]", b'[[0,"default",0,"1",1,2,3,4,"x"]]', b'[[0,"default",0,"1",1]]']
)
def test_what_each_subtask_took_is_ours_or_a_typed_error(payload: bytes) -> None:
    with pytest.raises(CheckpointError, match=SPARK_SUBTASKS):
        subtasks_of(CheckpointMetadata(1, (MasterState(SPARK_SUBTASKS, payload, 1),)))


def test_metadata_without_them_or_of_another_version_has_none() -> None:
    assert history_of(CheckpointMetadata(1)) is None
    assert history_of(metadata_with(b"[]", version=2)) is None


@pytest.mark.parametrize("payload", [b"", b"{", b"7", b"[1]", b"[{}]", b'[{"status": "great"}]', b'{"a": 1}'])
def test_what_is_not_ours_is_a_typed_error(payload: bytes) -> None:
    with pytest.raises(CheckpointError, match=SPARK_HISTORY):
        history_of(metadata_with(payload))


def test_the_oldest_drop_out() -> None:
    entries = [stats_of_failed(pending(), Abort(FailureReason.EXPIRED, str(i)), TRIGGERED) for i in range(5)]
    history = StatsHistory(3, entries[:4])
    assert history.entries == tuple(entries[1:4])
    assert history.with_entry(entries[4]) == tuple(entries[2:])
    assert history.entries == tuple(entries[1:4])
    history.add(entries[4])
    assert history.entries == tuple(entries[2:])


def test_a_new_run_goes_on_from_what_the_newest_checkpoint_carries(tmp_path: Path) -> None:
    environment = faulty_environment(LocalStorage(tmp_path))
    first = Driver(tmp_path, settings={"history": "3"}, environment=environment)
    for version in (1, 2, 3):
        first.batch(version)
    # Spark has not committed the last batch and runs it again: the history keeps its first checkpoint.
    second = Driver(tmp_path, settings={"history": "3"}, environment=environment)
    second.trigger(3)
    assert second.job is not None
    assert [stats.checkpoint_id for stats in second.job.history] == [2, 3, 4]
    second.batch(3)
    assert [stats.checkpoint_id for stats in second.job.history] == [3, 4, 6]
    carried = history_of(load(str(tmp_path / "ckpt" / "chk-6")))
    assert carried is not None
    assert [stats.checkpoint_id for stats in carried] == [3, 4, 6]
    assert [stats.completing_ms is None for stats in carried] == [False, True, True]
    size = carried[-1].size
    record = json.loads((tmp_path / "ckpt" / "completed" / f"{6:020d}.json").read_text())
    assert size is not None
    assert (size.state_bytes, size.rows) == (record["state_bytes"], record["rows"])
