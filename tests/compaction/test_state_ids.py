"""Tests of the state ids that the coordinator knows."""

from __future__ import annotations

from dataclasses import replace

from spark_ckpt.compaction.state_ids import MAX_HELD, RECENT_VERSIONS, StateIds
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.format.segment_ref import NO_BLOCKS, SegmentRef
from spark_ckpt.messages import Ack, InProgress, Task

STORE = StoreKey(0, "default")
KEY, OTHER = SubtaskKey(0, "default", 0), SubtaskKey(0, "default", 1)
NOTHING = SegmentRef(1, 1, NO_BLOCKS, 0)
ACK = Ack(KEY, 0, 1, "", Task(0, 0, 0, 0), 0, NOTHING, job="")


def known(*versions: int) -> StateIds:
    ids = StateIds()
    for version in versions:
        complete(ids, version)
    return ids


def complete(ids: StateIds, version: int, run: str = "") -> list[int]:
    return ids.add(version, {STORE: [f"{version}/{partition}{run}" for partition in range(2)]})


def acked(ids: StateIds, version: int, *in_progress: InProgress, base_version: int = 0) -> None:
    """An ack of a version, and its completion."""
    ids.hold(replace(ACK, version=version, in_progress=in_progress), base_version)
    complete(ids, version)


def test_ids_of_recent_versions() -> None:
    ids = known(1, 2, 3)
    assert ids.id_of(2, KEY) == "2/0"
    assert ids.id_of(2, OTHER) == "2/1"
    assert ids.id_of(4, KEY) is None
    assert ids.id_of(2, SubtaskKey(0, "default", 2)) is None
    assert ids.id_of(2, SubtaskKey(0, "left", 0)) is None
    forgotten = [version for n in range(4, 10) for version in complete(ids, n)]
    assert forgotten == list(range(1, 10 - RECENT_VERSIONS))
    assert ids.id_of(2, KEY) is None


def test_the_id_of_a_base_in_progress_is_known_for_any_number_of_batches() -> None:
    ids = known(1, 2)
    for version in range(3, 1000):
        acked(ids, version, InProgress(0, 2), InProgress(3, 5))
    assert ids.id_of(2, KEY) == "2/0"
    assert ids.id_of(2, OTHER) is None
    assert ids.held == 1
    assert ids.id_of(5, KEY) is None


def test_a_base_that_waits_for_its_turn_needs_no_id() -> None:
    ids = known(1, 2)
    acked(ids, 3, InProgress(0, 0))
    assert ids.held == 0


def test_ids_are_dropped_once_the_chain_has_a_base_as_new() -> None:
    ids = known(1, 2)
    for version in range(3, 20):
        acked(ids, version, InProgress(0, 2))
    acked(ids, 20, base_version=1)
    assert ids.held == 1
    acked(ids, 21, base_version=2)
    assert ids.held == 0
    assert ids.id_of(2, KEY) is None


def test_few_ids_are_held_of_a_subtask_however_many_executors_it_had() -> None:
    """Those of the bases that acks named last."""
    ids = known(1, 2)
    for version in range(3, 40):
        acked(ids, version, InProgress(0, 2 if version % 2 else version - 1))
    assert ids.held == MAX_HELD
    assert ids.id_of(2, KEY) == "2/0"
    assert ids.id_of(10, KEY) is None


def test_an_id_that_is_not_known_any_more_is_not_held() -> None:
    ids = known(*range(1, 10))
    acked(ids, 10, InProgress(0, 2))
    assert ids.held == 0


def test_a_version_that_is_completed_again_has_other_states() -> None:
    """As with a store without a query, which commits any version."""
    ids = known(1, 2)
    acked(ids, 3, InProgress(0, 2))
    acked(ids, 4, InProgress(0, 2), InProgress(0, 3))
    complete(ids, 3)
    complete(ids, 2)
    assert ids.held == 1
    complete(ids, 2, " of another attempt")
    assert ids.held == 0
    assert ids.id_of(2, KEY) == "2/0 of another attempt"
