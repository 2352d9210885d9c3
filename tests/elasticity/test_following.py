"""Decisions become requests, one at a time, and answers become outcomes; errors stay here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_ckpt.elasticity import ElasticDecision
from spark_ckpt.elasticity.asking import Asking
from spark_ckpt.elasticity.following import Following
from spark_ckpt.errors import StorageError
from spark_ckpt.location.rescale_request import (
    RescaleAnswer,
    RescaleRequest,
    answer_request,
    create_request,
    delete_request,
    read_request,
)
from spark_ckpt.storage import MemoryStorage, Storage
from tests.elasticity.progress import idle, progress
from tests.elasticity.script import Script
from tests.support.clocks import NoClock
from tests.support.memory_storage import memory_storage


class Followed:
    """A query that is followed, with its storage."""

    def __init__(self, *script: int | Exception | None, dry: bool = False, storage: Storage | None = None) -> None:
        self.policy = Script(script)
        self.storage = storage or memory_storage()
        self.clock = NoClock()
        self.told: list[ElasticDecision] = []
        self.opened = 0
        self.batch_id = 0
        self.following = Following(
            "query",
            self.policy,
            Asking(self.open, self.clock),
            lambda: (8, 2),
            dry=dry,
            clock=self.clock,
            on_decision=self.told.append,
        )

    def open(self) -> Storage:
        self.opened += 1
        return self.storage

    def batch(self, partitions: int = 4) -> None:
        self.clock.now += 1000
        self.following.step(progress(self.batch_id, partitions))
        self.batch_id += 1

    def answer(self, answer: RescaleAnswer) -> None:
        asked = read_request(self.storage)
        assert asked is not None
        answer_request(self.storage, asked, answer)

    @property
    def outcomes(self) -> list[tuple[int, int, int, str]]:
        return [(d.batch_id, d.before, d.after, d.outcome) for d in self.following.decisions]


def test_a_decision_is_asked_and_done() -> None:
    followed = Followed(None, 8)
    followed.batch()
    assert followed.opened == 0
    followed.batch()
    asked = read_request(followed.storage)
    assert asked is not None
    assert asked.partitions == 8
    assert followed.outcomes == [(1, 4, 8, "asked")]
    followed.answer(RescaleAnswer(batch_id=2, before=4))
    followed.batch(8)
    assert read_request(followed.storage) is None
    assert followed.outcomes == [(1, 4, 8, "done")]
    assert [(told.outcome, told.first_batch) for told in followed.told] == [("asked", None), ("done", 2)]
    assert followed.following.decisions[0].reason == "the script says so"
    assert len(followed.policy.seen) == 3
    assert (followed.policy.seen[0].cores, followed.policy.seen[0].executors) == (8, 2)


def test_one_request_at_a_time() -> None:
    followed = Followed(8, 16)
    for _ in range(4):
        followed.batch()
    assert followed.outcomes == [(0, 4, 8, "asked")]
    assert len(followed.policy.seen) == 1
    followed.answer(RescaleAnswer(batch_id=4, before=4))
    followed.batch(8)
    assert followed.outcomes == [(0, 4, 8, "done"), (4, 8, 16, "asked")]


def test_a_refusal_is_kept() -> None:
    followed = Followed(4000)
    followed.batch()
    followed.answer(RescaleAnswer(refused="too many"))
    followed.batch()
    assert followed.outcomes == [(0, 4, 4000, "refused")]
    assert followed.following.decisions[0].detail == "too many"
    assert str(followed.told[-1]) == "batch 0: 4 -> 4000 partitions, refused: the script says so (too many)"


def test_dry_asks_for_nothing() -> None:
    followed = Followed(8, None, 2, dry=True)
    for _ in range(3):
        followed.batch()
    assert followed.outcomes == [(0, 4, 8, "dry"), (2, 4, 2, "dry")]
    assert followed.opened == 0


def test_each_batch_is_seen_once_and_an_idle_query_not_at_all() -> None:
    followed = Followed()
    for given in (None, idle(0), progress(0), progress(0), idle(1), idle(1), progress(1)):
        followed.following.step(given)
    assert [seen.batch_id for seen in followed.policy.seen] == [0, 1]


def test_the_same_number_is_no_decision() -> None:
    followed = Followed(4)
    followed.batch()
    assert followed.outcomes == []


def test_a_number_below_one_is_not_asked_for() -> None:
    followed = Followed(0)
    followed.batch()
    assert followed.outcomes == [(0, 4, 0, "failed")]
    assert followed.opened == 0


def test_an_error_of_the_policy_is_kept_and_the_next_batch_asked() -> None:
    followed = Followed(ZeroDivisionError("oh"), ZeroDivisionError("oh"), 8)
    for _ in range(3):
        followed.batch()
    assert [str(error) for error in followed.following.errors] == ["oh"]
    assert followed.outcomes == [(2, 4, 8, "asked")]


def test_an_error_of_the_callback_is_kept() -> None:
    followed = Followed(8)

    def fail(decision: ElasticDecision) -> None:
        raise RuntimeError(decision.outcome)

    followed.following._on_decision = fail
    followed.batch()
    assert followed.outcomes == [(0, 4, 8, "asked")]
    assert [str(error) for error in followed.following.errors] == ["asked"]


# ---- requests of others, and lost ones -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "age_ms", "outcome"),
    [
        (None, 10**9, "failed"),
        (RescaleAnswer(batch_id=7, before=4), 0, "failed"),
        (RescaleAnswer(batch_id=7, before=4), 61_000, "asked"),
    ],
    ids=["without an answer", "just answered", "abandoned"],
)
def test_a_request_of_another_process_stays_unless_it_is_abandoned(
    answer: RescaleAnswer | None, age_ms: int, outcome: str
) -> None:
    followed = Followed(8)
    theirs = RescaleRequest(5, followed.clock.now - age_ms)
    assert create_request(followed.storage, replace(theirs, asked_ms=max(0, theirs.asked_ms)))
    if answer is not None:
        answer_request(followed.storage, theirs, answer)
    followed.batch()
    assert followed.outcomes == [(0, 4, 8, outcome)]
    there = read_request(followed.storage)
    assert there is not None
    assert (there.token == theirs.token) == (outcome == "failed")


def test_a_request_that_someone_deletes_is_over() -> None:
    followed = Followed(8)
    followed.batch()
    delete_request(followed.storage)
    followed.batch()
    assert followed.outcomes == [(0, 4, 8, "failed")]
    assert "gone" in (followed.following.decisions[0].detail or "")


def test_a_request_without_an_answer_is_withdrawn() -> None:
    followed = Followed(8, 8)
    for _ in range(5):
        followed.batch()
    followed.clock.now += 120_000
    followed.batch()
    assert followed.outcomes == [(0, 4, 8, "withdrawn")]
    assert read_request(followed.storage) is None
    followed.batch()
    assert followed.outcomes[1:] == [(6, 4, 8, "asked")]


def test_the_end_withdraws_a_request() -> None:
    followed = Followed(8)
    followed.batch()
    followed.following.end()
    assert followed.outcomes == [(0, 4, 8, "withdrawn")]
    assert read_request(followed.storage) is None


def test_the_end_takes_a_late_answer() -> None:
    followed = Followed(8)
    followed.batch()
    followed.answer(RescaleAnswer(batch_id=1, before=4))
    followed.following.end()
    assert followed.outcomes == [(0, 4, 8, "done")]


class Failing(MemoryStorage):
    """A storage some of whose operations fail."""

    fails: frozenset[str] = frozenset()

    def read(self, name: str) -> bytes:
        self._check("read")
        return super().read(name)

    def delete(self, name: str) -> bool:
        self._check("delete")
        return super().delete(name)

    def _check(self, operation: str) -> None:
        if operation in self.fails:
            raise StorageError("rescale.json", operation, "broken")


@pytest.fixture
def failing() -> Failing:
    storage = memory_storage()
    storage.__class__ = Failing
    assert isinstance(storage, Failing)
    return storage


def test_a_storage_that_cannot_be_opened_is_an_error_of_the_decision() -> None:
    followed = Followed(8, 8)

    def open_later() -> Storage:
        if followed.batch_id == 0:
            raise StorageError("/location", "read", "broken")
        return followed.storage

    followed.following._asking = Asking(open_later, followed.clock)
    followed.batch()
    followed.batch()
    assert followed.outcomes == [(0, 4, 8, "failed"), (1, 4, 8, "asked")]


@pytest.mark.parametrize("operation", ["read", "delete"])
def test_an_answer_that_cannot_be_taken_is_taken_later(failing: Failing, operation: str) -> None:
    followed = Followed(8, storage=failing)
    followed.batch()
    followed.answer(RescaleAnswer(batch_id=1, before=4))
    failing.fails = frozenset({operation})
    followed.batch()
    assert followed.outcomes == [(0, 4, 8, "asked")]
    failing.fails = frozenset()
    followed.batch(8)
    assert followed.outcomes == [(0, 4, 8, "done")]
    assert [str(error) for error in followed.following.errors] == [f"cannot {operation} rescale.json: broken"]


@pytest.mark.parametrize("operation", ["read", "delete"])
def test_a_request_that_cannot_be_withdrawn_has_failed(failing: Failing, operation: str) -> None:
    followed = Followed(8, storage=failing)
    followed.batch()
    failing.fails = frozenset({operation})
    followed.following.end()
    assert followed.outcomes == [(0, 4, 8, "failed")]
    assert "cannot be deleted" in (followed.following.decisions[0].detail or "")
