"""The thread beside a query: it ends with it, and never disturbs it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from spark_ckpt import elastic
from spark_ckpt.clock import SystemClock
from spark_ckpt.elasticity import Elastic
from spark_ckpt.elasticity.asking import Asking
from spark_ckpt.elasticity.following import Following
from spark_ckpt.location.rescale_request import RescaleAnswer, answer_request, read_request
from tests.elasticity.progress import progress
from tests.elasticity.script import Script
from tests.support.memory_storage import memory_storage
from tests.support.waiting import eventually


class FakeQuery:
    """A query with the progress that a test gives it."""

    def __init__(self) -> None:
        self.active = True
        self.progress: dict[str, Any] | None = None
        self.error: Exception | None = None
        self.polls = 0

    @property
    def isActive(self) -> bool:  # noqa: N802
        self.polls += 1
        if self.error is not None:
            raise self.error
        return self.active

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        return self.progress


@pytest.fixture
def query() -> FakeQuery:
    return FakeQuery()


def followed(query: FakeQuery, policy: Script, storage: Any = None) -> Elastic:
    clock = SystemClock()
    asking = Asking(lambda: storage or memory_storage(), clock)
    following = Following("query", policy, asking, lambda: (1, 1), dry=False, clock=clock, on_decision=None)
    return Elastic(query, following)


def test_a_query_is_asked_and_answers(query: FakeQuery) -> None:
    storage = memory_storage()
    running = followed(query, Script([8]), storage)
    query.progress = progress(0)
    asked = eventually(lambda: read_request(storage))
    assert asked is not None
    answer_request(storage, asked, RescaleAnswer(batch_id=1, before=4))
    query.progress = progress(1, 8)
    eventually(lambda: [decision.outcome for decision in running.decisions] == ["done"])
    assert running.is_active
    running.stop()
    assert not running.is_active
    assert running.errors == []


def test_it_ends_with_the_query_and_takes_its_request_along(query: FakeQuery) -> None:
    storage = memory_storage()
    running = followed(query, Script([8]), storage)
    query.progress = progress(0)
    eventually(lambda: read_request(storage))
    query.active = False
    eventually(lambda: not running.is_active)
    assert [decision.outcome for decision in running.decisions] == ["withdrawn"]
    assert read_request(storage) is None


def test_the_last_batch_before_the_end_is_seen(query: FakeQuery) -> None:
    query.progress, query.active = progress(3), False
    policy = Script([])
    running = followed(query, policy)
    eventually(lambda: not running.is_active)
    assert [seen.batch_id for seen in policy.seen] == [3]


def test_it_outlives_a_jvm_that_does_not_answer_for_a_moment(query: FakeQuery) -> None:
    query.error = ConnectionError("no answer")
    running = followed(query, Script([]))
    eventually(lambda: query.polls > 2)
    query.error = None
    polls = query.polls
    eventually(lambda: query.polls > polls + 1)
    assert running.is_active
    assert [str(error) for error in running.errors] == ["no answer"]
    running.stop()


def test_it_ends_with_the_jvm(query: FakeQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_ckpt.elasticity.running._POLL_SECONDS", 0.001)
    query.error = ConnectionError("no answer")
    running = followed(query, Script([]))
    eventually(lambda: not running.is_active)
    assert len(running.errors) == 1


def test_its_thread_is_a_daemon(query: FakeQuery) -> None:
    running = followed(query, Script([]))
    ours = [thread for thread in threading.enumerate() if thread.name == "spark-ckpt-elastic"]
    assert ours
    assert all(thread.daemon for thread in ours)
    running.stop()


def test_a_query_of_another_process_is_refused(query: Any) -> None:
    with pytest.raises(TypeError, match="FakeQuery is not a query of a classic session"):
        elastic(query, Script([]))
