"""A request for a rescale of a running query ends with an answer or is withdrawn; no file stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.errors import CheckpointError, StorageError
from spark_ckpt.location.rescale_request import (
    REQUEST,
    RescaleAnswer,
    RescaleRequest,
    answer_request,
    create_request,
    delete_request,
    read_request,
)
from spark_ckpt.operations.running_rescale import (
    POLL_SECONDS,
    SLOW_POLL_SECONDS,
    RunningRescaling,
    rescale_running,
)
from spark_ckpt.rescaling.errors import RescaleNotAnsweredError, RescaleRefusedError
from spark_ckpt.storage import LocalStorage, Storage
from tests.storage.faulty import FaultyStorage

MINUTE = 60_000


class Driver:
    """A clock whose pauses are those in which a driver, or another command, acts.

    Args:
        act: called in each pause with its number, from 1.
    """

    def __init__(self, act: Callable[[int], object] = lambda pause: None) -> None:
        self.act = act
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return 10 * MINUTE + int(sum(self.slept) * 1000)

    def monotonic(self) -> float:
        return 100 + sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.act(len(self.slept))


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def answering(storage: Storage, answer: RescaleAnswer, at: int = 1) -> Driver:
    """A driver that answers in a pause."""

    def act(pause: int) -> None:
        if pause == at:
            request = read_request(storage)
            assert request is not None
            assert (request.partitions, request.answer) == (8, None)
            answer_request(storage, request, answer)

    return Driver(act)


def interrupt(_: int) -> None:
    raise KeyboardInterrupt


def test_the_driver_answers(storage: LocalStorage) -> None:
    seconds: list[tuple[int, int]] = []
    driver = answering(storage, RescaleAnswer(batch_id=7, before=4), at=6)
    done = rescale_running(storage, 8, clock=driver, progress=lambda waited, of: seconds.append((waited, of)))
    assert done == RunningRescaling(storage.location, 4, 8, 7, 1200)
    assert driver.slept == [POLL_SECONDS] * 6
    assert (seconds[0], seconds[-1]) == ((0, 300), (1, 300))
    assert read_request(storage) is None


def test_the_query_has_that_number_already(storage: LocalStorage) -> None:
    done = rescale_running(storage, 8, clock=answering(storage, RescaleAnswer(before=8)))
    assert (done.before, done.after, done.batch_id) == (8, 8, None)


def test_the_driver_refuses(storage: LocalStorage) -> None:
    with pytest.raises(RescaleRefusedError) as caught:
        rescale_running(storage, 8, clock=answering(storage, RescaleAnswer(refused="the reason")))
    assert (caught.value.partitions, caught.value.reason) == (8, "the reason")
    assert read_request(storage) is None


def test_nobody_answers(storage: LocalStorage) -> None:
    driver = Driver()
    with pytest.raises(RescaleNotAnsweredError, match="leave out --running") as caught:
        rescale_running(storage, 8, timeout_s=3, clock=driver)
    assert (caught.value.location, caught.value.partitions) == (storage.location, 8)
    assert caught.value.seconds == pytest.approx(3)
    assert sum(driver.slept) == pytest.approx(3)
    assert read_request(storage) is None


def test_object_stores_are_asked_less_often(storage: LocalStorage) -> None:
    slow, driver = FaultyStorage(storage), Driver()
    slow.requests_are_dear = True
    with pytest.raises(RescaleNotAnsweredError):
        rescale_running(slow, 8, timeout_s=5, clock=driver)
    assert driver.slept == [SLOW_POLL_SECONDS, SLOW_POLL_SECONDS, 1]


def test_ctrl_c_withdraws_the_request(storage: LocalStorage) -> None:
    with pytest.raises(RescaleNotAnsweredError) as caught:
        rescale_running(storage, 8, clock=Driver(interrupt))
    assert caught.value.seconds == pytest.approx(POLL_SECONDS)
    assert read_request(storage) is None


def test_an_answer_at_the_last_moment_counts(storage: LocalStorage) -> None:
    driver = answering(storage, RescaleAnswer(batch_id=7, before=4))
    answer = driver.act

    def answered_and_interrupted(pause: int) -> None:
        answer(pause)
        raise KeyboardInterrupt

    driver.act = answered_and_interrupted
    assert rescale_running(storage, 8, clock=driver).batch_id == 7


def test_one_request_at_a_time(storage: LocalStorage) -> None:
    other = RescaleRequest(16, 8 * MINUTE)
    create_request(storage, other)
    driver = Driver()
    with pytest.raises(RescaleRefusedError) as caught:
        rescale_running(storage, 8, clock=driver)
    assert "another command asked for 16 partitions 2 min ago" in caught.value.reason
    assert storage.describe(REQUEST) in caught.value.reason
    assert read_request(storage) == other
    assert driver.slept == []


ANSWERED = RescaleRequest(16, 8 * MINUTE, answer=RescaleAnswer(batch_id=3, before=4))


def test_the_answer_of_a_dead_command_gives_way(storage: LocalStorage) -> None:
    create_request(storage, ANSWERED)
    done = rescale_running(storage, 8, clock=answering(storage, RescaleAnswer(batch_id=7, before=16), at=2))
    assert (done.before, done.batch_id) == (16, 7)
    assert read_request(storage) is None


def test_a_command_that_lives_reads_its_answer_first(storage: LocalStorage) -> None:
    create_request(storage, ANSWERED)
    later = answering(storage, RescaleAnswer(batch_id=7, before=16), at=2)
    answer = later.act
    later.act = lambda pause: delete_request(storage) if pause == 1 else answer(pause)
    assert rescale_running(storage, 8, clock=later).before == 16


def test_commands_that_come_first_again_and_again(storage: LocalStorage) -> None:
    create_request(storage, ANSWERED)

    def replace(_: int) -> None:
        delete_request(storage)
        create_request(storage, RescaleRequest(16, 8 * MINUTE, answer=ANSWERED.answer))

    with pytest.raises(RescaleRefusedError, match="at the same time"):
        rescale_running(storage, 8, clock=Driver(replace))
    assert read_request(storage) is not None


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_request_that_is_deleted(storage: LocalStorage, is_replaced: bool) -> None:
    other = RescaleRequest(16, 0)

    def act(pause: int) -> None:
        delete_request(storage)
        if is_replaced:
            create_request(storage, other)

    with pytest.raises(RescaleNotAnsweredError, match="was deleted meanwhile"):
        rescale_running(storage, 8, clock=Driver(act))
    assert read_request(storage) == (other if is_replaced else None)


def test_damage_stays(storage: LocalStorage) -> None:
    storage.write_atomic(REQUEST, b"{}")
    with pytest.raises(CheckpointError, match="Delete it"):
        rescale_running(storage, 8, clock=Driver())
    assert storage.read(REQUEST) == b"{}"


def test_a_storage_that_fails_leaves_no_request(storage: LocalStorage) -> None:
    faulty = FaultyStorage(storage)
    driver = Driver(lambda pause: faulty.fail("read", "rescale.json"))
    with pytest.raises(StorageError):
        rescale_running(faulty, 8, clock=driver)
    assert len(driver.slept) == 1
    assert read_request(storage) is None
