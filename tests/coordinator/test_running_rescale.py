"""A query changes its number of partitions between two batches, and any crash leaves a location that continues."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.location.rescale_request import RescaleAnswer, RescaleRequest, create_request, read_request
from spark_ckpt.messages import Event, Notification, Rescale
from spark_ckpt.operations.verify import verify
from spark_ckpt.recovery.errors import ParallelismChangedError
from spark_ckpt.rescaling.errors import RescaleRefusedError
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.driver import check_rows, load
from tests.support.invariants import assert_invariants
from tests.support.queries import RESCALABLE, SETTINGS, RescalableQuery

LAST = 5
"""The last batch before the rescale."""


@pytest.fixture(params=[(1, "0"), (2, "0"), (2, "64k")], ids=["ids-off", "ids-on", "inline"])
def query(request: pytest.FixtureRequest, tmp_path: Path) -> RescalableQuery:
    """Query with batches up to `LAST`."""
    checkpoint_format, inline = request.param
    settings = {**SETTINGS, "inlineThreshold": inline}
    query = RescalableQuery(FaultyStorage(LocalStorage(tmp_path)), settings, checkpoint_format)
    query.run(range(LAST + 1))
    return query


def ids_of(query: RescalableQuery, batch: int) -> object:
    return json.loads(query.storage.read(f"commits/{batch}").decode().partition("\n")[2]).get("stateUniqueIds")


@pytest.mark.parametrize("chain", [(8,), (2, 4), (1, 8), (8, 1, 2)])
def test_all_rows_are_there_after_each_rescale(query: RescalableQuery, chain: tuple[int, ...]) -> None:
    batch = LAST + 1
    for number in chain:
        rows = query.all_rows()
        query.rescale(batch, number)
        query.start(batch)
        query.driver.trigger(batch + 1)
        load(query.driver, query.storage, batch)
        assert query.all_rows() == rows
        query.first(batch)
        check_rows(query.driver, query.storage, batch + 1)
        query.run(range(batch + 1, batch + 3))
        batch += 3
    assert query.crash() == batch
    assert query.operators[0].parallelism == chain[-1]
    assert_invariants(query.storage)
    assert verify(query.storage, everything=True).is_whole


def begun(query: RescalableQuery) -> None:
    """Spark has not written the offsets of the next batch, so nothing has begun."""
    query.have(4)


def started(query: RescalableQuery) -> None:
    query.start(LAST + 1)


def triggered(query: RescalableQuery) -> None:
    query.start(LAST + 1)
    query.driver.trigger(LAST + 2)


def acknowledged(query: RescalableQuery) -> None:
    """Half of the subtasks have acknowledged."""
    triggered(query)
    assert query.driver.job is not None
    load(query.driver, query.storage, LAST + 1)
    subtasks = query.driver.subtasks()
    for key in subtasks[: len(subtasks) // 2]:
        query.driver.job.acknowledge(query.driver.make_ack(key, LAST + 2))


def completed(query: RescalableQuery) -> None:
    """Spark has not committed the batch."""
    triggered(query)
    load(query.driver, query.storage, LAST + 1)
    query.driver.batch(LAST + 2)


@pytest.mark.parametrize("number", [8, 2, 1])
@pytest.mark.parametrize("moment", [begun, started, triggered, acknowledged, completed])
def test_a_start_after_a_crash_continues_with_the_new_number(
    query: RescalableQuery, moment: Callable[[RescalableQuery], None], number: int
) -> None:
    rows = query.all_rows()
    query.rescale(LAST + 1, number)
    moment(query)
    assert query.crash() == LAST + 1
    assert query.operators[0].parallelism == (4 if moment is begun else number)
    assert query.all_rows() == rows
    if query.checkpoint_format == 2:
        asked = ids_of(query, LAST)
        assert isinstance(asked, dict)
        for key, state_id in query.driver.ids.items():
            position = RESCALABLE[key.operator_id].stores.index(key.store)
            assert asked[str(key.operator_id)][key.partition][position] == state_id
    query.driver.batch(LAST + 2)
    query.commit(LAST + 1)
    query.run(range(LAST + 2, LAST + 4))
    check_rows(query.driver, query.storage, LAST + 4)
    assert_invariants(query.storage)
    assert verify(query.storage, everything=True).is_whole


@pytest.mark.parametrize("moment", [started, triggered, acknowledged])
def test_another_side_process_of_the_run_finds_the_same_states(
    query: RescalableQuery, moment: Callable[[RescalableQuery], None]
) -> None:
    """The messages of the last batch are sent again if it is not complete."""
    reply = query.rescale(LAST + 1, 8)
    moment(query)
    query.driver.job = None
    query.start(LAST + 1)
    query.driver.trigger(LAST + 2)
    load(query.driver, query.storage, LAST + 1)
    for key, state_id in query.driver.ids.items() if query.checkpoint_format == 2 else ():
        position = RESCALABLE[key.operator_id].stores.index(key.store)
        assert reply.state_ids[str(key.operator_id)][key.partition][position] == state_id
    query.driver.batch(LAST + 2)
    query.commit(LAST + 1)
    check_rows(query.driver, query.storage, LAST + 2)


def test_a_refusal_changes_nothing(query: RescalableQuery) -> None:
    before = query.storage.read(f"commits/{LAST}")
    assert query.driver.job is not None
    for number, reason in ((4, "already"), (100_000, "key groups")):
        with pytest.raises(RescaleRefusedError, match=reason):
            query.driver.job.rescale(Rescale(LAST + 1, number, job=query.driver.run_id))
    with pytest.raises(RescaleRefusedError, match="no complete checkpoint"):
        query.driver.job.rescale(Rescale(LAST + 2, 8, job=query.driver.run_id))
    assert query.storage.read(f"commits/{LAST}") == before
    query.run(range(LAST + 1, LAST + 2))


def test_a_fenced_run_changes_nothing(query: RescalableQuery) -> None:
    other = RescalableQuery(query.storage, query.settings, query.checkpoint_format)
    other.restart()
    before = query.storage.read(f"commits/{LAST}")
    if query.checkpoint_format == 2:
        with pytest.raises(RescaleRefusedError, match="has taken over"):
            query.rescale(LAST + 1, 8)
    assert query.storage.read(f"commits/{LAST}") == before


def test_a_rescale_of_the_command_is_not_finished_by_a_start(query: RescalableQuery) -> None:
    """It was interrupted after its first write, the last entry with another number."""
    last = SparkLog(query.storage).offsets(LAST)
    query.storage.write_atomic(f"offsets/{LAST + 1}", last.with_shuffle_partitions(8).encode())
    query.have(8)
    with pytest.raises(ParallelismChangedError, match="has 8 partitions, but its state"):
        query.driver.trigger(LAST + 2)


def test_a_request_is_told_to_the_driver_once_and_answered(tmp_path: Path) -> None:
    query = RescalableQuery(LocalStorage(tmp_path))
    told: list[Notification] = []
    query.driver.log_epoch = 0
    query.driver.notify = told.append
    assert create_request(query.storage, RescaleRequest(8, 5))
    query.run(range(3))
    wanted = [note for note in told if note.event is Event.RESCALE]
    assert [note.partitions for note in wanted] == [8]
    query.rescale(3, 8)
    unanswered = read_request(query.storage)
    assert unanswered is not None
    assert unanswered.answer is None
    query.first(3)
    answered = read_request(query.storage)
    assert answered is not None
    assert answered.answer == RescaleAnswer(batch_id=3, before=4)
    assert Counter(note.event for note in told)[Event.RESCALE] == 1


@pytest.mark.parametrize(
    ("partitions", "log_epoch", "answer"),
    [
        (4, 0, RescaleAnswer(before=4)),
        (8, None, RescaleAnswer(refused="")),
    ],
)
def test_requests_that_need_no_rescale(
    partitions: int, log_epoch: int | None, answer: RescaleAnswer, tmp_path: Path
) -> None:
    query = RescalableQuery(LocalStorage(tmp_path))
    query.driver.log_epoch = log_epoch
    create_request(query.storage, RescaleRequest(partitions, 5))
    query.run(range(1))
    there = read_request(query.storage)
    assert there is not None
    assert there.answer is not None
    if answer.refused is None:
        assert there.answer == answer
    else:
        assert "CheckpointLogFileManager" in str(there.answer.refused)
