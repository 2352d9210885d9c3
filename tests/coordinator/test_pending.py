from __future__ import annotations

import pytest

from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.messages import Ack, Operator, Outcome
from tests.coordinator.pending_checkpoint import NOW, ack, failure, pending


def outcome(checkpoint: PendingCheckpoint, message: Ack) -> Outcome:
    return checkpoint.acknowledge(message, NOW).outcome


def test_is_complete_when_every_store_of_every_subtask_has_acknowledged() -> None:
    checkpoint = pending()
    subtasks = [(0, "left", 0), (0, "left", 1), (0, "right", 0), (0, "right", 1), (1, "default", 0)]
    for subtask in subtasks:
        assert not checkpoint.is_complete
        assert SubtaskKey(*subtask) in checkpoint.missing()
        assert outcome(checkpoint, ack(*subtask, stage=subtask[0])) is Outcome.SUCCESS
    assert checkpoint.is_complete
    assert checkpoint.missing() == []


@pytest.mark.parametrize(
    "subtask", [(0, "left", 2), (0, "left", -1), (0, "middle", 0), (7, "default", 0), (1, "default", 1)]
)
def test_a_subtask_that_is_not_in_the_plan_is_unknown(subtask: tuple[int, str, int]) -> None:
    checkpoint = pending()
    decision = checkpoint.acknowledge(ack(*subtask), NOW)
    assert (decision.outcome, decision.state_id) == (Outcome.UNKNOWN, None)
    assert decision.reason is not None
    assert f"{SubtaskKey(*subtask)} is not a subtask of batch 4" in decision.reason
    assert not checkpoint.acks


def test_the_same_ack_again_is_a_success_again() -> None:
    checkpoint, message = pending(), ack()
    assert [outcome(checkpoint, message) for _ in range(2)] == [Outcome.SUCCESS] * 2
    assert len(checkpoint.missing()) == 4


def test_a_second_state_of_the_same_attempt_is_a_duplicate() -> None:
    checkpoint, first = pending(), ack()
    checkpoint.acknowledge(first, NOW)
    assert checkpoint.acknowledge(ack(), NOW) == (Outcome.DUPLICATE, first.state_id, None)


class TestSpeculation:
    def test_the_attempt_that_asks_first_is_authorised(self) -> None:
        checkpoint = pending()
        assert outcome(checkpoint, ack(attempt=1)) is Outcome.SUCCESS
        assert outcome(checkpoint, ack(attempt=0)) is Outcome.DENIED
        assert outcome(checkpoint, ack(store="right", attempt=0)) is Outcome.DENIED
        assert outcome(checkpoint, ack(store="right", attempt=1)) is Outcome.SUCCESS

    def test_other_partitions_are_not_concerned(self) -> None:
        checkpoint = pending()
        checkpoint.acknowledge(ack(attempt=1), NOW)
        assert outcome(checkpoint, ack(partition=1, attempt=0)) is Outcome.SUCCESS

    def test_a_failed_attempt_makes_room_and_its_acks_are_dropped(self) -> None:
        checkpoint = pending()
        first = [ack(store=store, attempt=0) for store in ("left", "right")]
        for message in first:
            checkpoint.acknowledge(message, NOW)
        assert checkpoint.task_failed(failure(attempt=0)) == first
        assert len(checkpoint.missing()) == 5
        second = ack(attempt=1)
        assert outcome(checkpoint, second) is Outcome.SUCCESS
        assert checkpoint.acks[second.subtask] is second

    def test_a_late_ack_of_a_failed_attempt_is_denied(self) -> None:
        checkpoint = pending()
        checkpoint.task_failed(failure(attempt=0))
        assert outcome(checkpoint, ack(attempt=0)) is Outcome.DENIED
        assert outcome(checkpoint, ack(attempt=1)) is Outcome.SUCCESS
        assert outcome(checkpoint, ack(store="right", attempt=0)) is Outcome.DENIED

    def test_the_failure_of_the_attempt_that_was_denied_changes_nothing(self) -> None:
        checkpoint = pending()
        checkpoint.acknowledge(ack(attempt=0), NOW)
        assert checkpoint.task_failed(failure(attempt=1)) == []
        assert outcome(checkpoint, ack(store="right", attempt=0)) is Outcome.SUCCESS

    def test_the_failure_of_a_partition_of_another_stage_changes_nothing(self) -> None:
        checkpoint = pending()
        checkpoint.acknowledge(ack(stage=1), NOW)
        assert checkpoint.task_failed(failure(stage=2)) == []
        assert len(checkpoint.missing()) == 4


class TestStageAttempts:
    def test_a_new_attempt_of_the_stage_repeats_what_is_acknowledged(self) -> None:
        checkpoint, first = pending(), ack(stage_attempt=0)
        checkpoint.acknowledge(first, NOW)
        assert checkpoint.acknowledge(ack(stage_attempt=1), NOW) == (Outcome.DUPLICATE, first.state_id, None)

    def test_a_new_attempt_of_the_stage_waits_for_a_task_of_the_old_one_that_still_runs(self) -> None:
        checkpoint = pending()
        checkpoint.acknowledge(ack(store="left", stage_attempt=0), NOW)
        assert outcome(checkpoint, ack(store="right", stage_attempt=1)) is Outcome.DENIED
        checkpoint.task_failed(failure(stage_attempt=0))
        assert outcome(checkpoint, ack(store="left", stage_attempt=1)) is Outcome.SUCCESS
        assert outcome(checkpoint, ack(store="right", stage_attempt=1)) is Outcome.SUCCESS
        assert outcome(checkpoint, ack(store="right", stage_attempt=0)) is Outcome.DENIED

    def test_the_state_of_a_task_that_is_resubmitted_stays(self) -> None:
        checkpoint, first = pending(), ack(attempt=0)
        checkpoint.acknowledge(first, NOW)
        assert checkpoint.task_failed(failure(attempt=0, reason="Resubmitted")) == []
        assert checkpoint.acknowledge(ack(attempt=1), NOW) == (Outcome.DUPLICATE, first.state_id, None)


class TestStagesThatRunTwice:
    def test_the_first_ack_of_a_subtask_counts(self) -> None:
        checkpoint, first = pending(), ack(stage=1)
        checkpoint.acknowledge(first, NOW)
        assert checkpoint.acknowledge(ack(stage=2), NOW) == (Outcome.DUPLICATE, first.state_id, None)

    def test_what_the_first_stage_left_out_is_taken_from_the_second(self) -> None:
        checkpoint = pending()
        checkpoint.acknowledge(ack(partition=0, stage=1), NOW)
        assert outcome(checkpoint, ack(partition=1, stage=2)) is Outcome.SUCCESS

    def test_the_second_stage_counts_where_the_first_has_failed(self) -> None:
        checkpoint = pending()
        checkpoint.acknowledge(ack(stage=1), NOW)
        checkpoint.task_failed(failure(stage=1))
        assert outcome(checkpoint, ack(stage=2)) is Outcome.SUCCESS


def test_an_ack_can_be_withdrawn_and_given_again() -> None:
    checkpoint, message = pending(), ack()
    checkpoint.acknowledge(message, NOW)
    checkpoint.withdraw(message)
    assert message.subtask in checkpoint.missing()
    assert outcome(checkpoint, ack()) is Outcome.SUCCESS


def test_withdrawing_an_ack_that_does_not_count_changes_nothing() -> None:
    checkpoint, first = pending(), ack()
    checkpoint.acknowledge(first, NOW)
    checkpoint.withdraw(ack())
    assert checkpoint.acks[first.subtask] is first


def test_what_is_missing_is_described_for_people() -> None:
    checkpoint = PendingCheckpoint([Operator(0, "x", ("default",), 200)], 4, 5, NOW)
    checkpoint.acknowledge(ack(store="default"), NOW)
    text = checkpoint.describe_missing()
    assert text.startswith("199 of 200 subtasks (operator 0, store default, partition 1; ")
    assert text.endswith("and 191 more)")


def test_an_ack_that_another_attempt_was_told_to_count_stays_though_its_own_attempt_has_failed() -> None:
    checkpoint = pending()
    first = ack(store="left")
    assert outcome(checkpoint, first) is Outcome.SUCCESS
    # Spark retries the stage before the coordinator learns that the first attempt has failed.
    assert outcome(checkpoint, ack(store="left", stage_attempt=1)) is Outcome.DUPLICATE
    assert checkpoint.task_failed(failure()) == []
    assert outcome(checkpoint, ack(store="right", stage_attempt=1)) is Outcome.SUCCESS
    assert checkpoint.acks[first.subtask] is first
