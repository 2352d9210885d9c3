from __future__ import annotations

from spark_ckpt.coordinator.attempts import CompletedAttempts
from spark_ckpt.messages import Outcome
from tests.coordinator.pending_checkpoint import NOW, ack, failure, pending


def completed() -> tuple[CompletedAttempts, str]:
    """Attempts at completion of a checkpoint with one ack, of a task's first attempt; and the state id of that ack."""
    checkpoint, first = pending(), ack()
    checkpoint.acknowledge(first, NOW)
    return checkpoint.attempts_at_completion(), first.state_id


def test_a_copy_that_comes_after_completion_is_denied_until_the_attempt_that_counts_has_failed() -> None:
    attempts, counts = completed()
    decision = attempts.late(ack(attempt=1), counts)
    assert decision.outcome is Outcome.DENIED
    assert decision.reason == (
        "operator 0, store left, partition 0: attempt 1 of stage attempt 0 comes after attempt 0 of stage attempt 0, "
        "which has acknowledged"
    )
    attempts.task_failed(failure(attempt=0))
    assert attempts.late(ack(attempt=2), counts) == (Outcome.DUPLICATE, counts, None)
    assert attempts.late(ack(attempt=0), counts).outcome is Outcome.DENIED


def test_failures_of_others_make_no_room() -> None:
    attempts, counts = completed()
    for other in (failure(1), failure(stage=2), failure(attempt=2), failure(stage_attempt=1)):
        attempts.task_failed(other)
    assert attempts.late(ack(attempt=1), counts).outcome is Outcome.DENIED


def test_what_is_no_copy_is_told_what_counts() -> None:
    attempts, counts = completed()
    for other in (ack(stage_attempt=1), ack(stage=2), ack()):
        assert attempts.late(other, counts) == (Outcome.DUPLICATE, counts, None)


def test_a_task_that_is_resubmitted_is_told_what_counts() -> None:
    attempts, counts = completed()
    attempts.task_failed(failure(attempt=3, reason="Resubmitted"))
    assert attempts.late(ack(attempt=1), counts).outcome is Outcome.DENIED
    attempts.task_failed(failure(attempt=0, reason="Resubmitted"))
    assert attempts.late(ack(attempt=1), counts) == (Outcome.DUPLICATE, counts, None)


def test_a_failure_before_completion_is_remembered() -> None:
    checkpoint, first = pending(), ack()
    checkpoint.acknowledge(first, NOW)
    checkpoint.acknowledge(ack(stage_attempt=1), NOW)  # relies on the first ack
    checkpoint.task_failed(failure())
    assert checkpoint.acknowledge(ack(attempt=1), NOW) == (Outcome.DUPLICATE, first.state_id, None)
    assert checkpoint.attempts_at_completion().late(ack(attempt=2), first.state_id) == (
        Outcome.DUPLICATE,
        first.state_id,
        None,
    )


def test_a_subtask_whose_ack_was_answered_with_an_error_is_told_what_counts() -> None:
    """The ack was answered with an error, but the record had been created: a retry is told the state id that counts."""
    attempts, _ = completed()
    assert attempts.late(ack(store="right", attempt=1), "id") == (Outcome.DUPLICATE, "id", None)
