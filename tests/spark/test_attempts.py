"""Task attempts on a real cluster: copies, failures, lost executors and late attempts, with and without checkpoint ids.

In each case `_metadata` must have the state of the attempt that Spark counts, and the result must be the batch answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.coordinator.failures import FailureReason
from spark_ckpt.location.listing import list_completed
from spark_ckpt.storage import LocalStorage
from tests.spark.jobs.attempts import BROKEN, BROKEN_LATE, HELD, LATER, MEETING, NOT_THERE, PASSED, SLOW, ZOMBIE
from tests.support.checkpoints import committed_batches
from tests.support.feeds import at
from tests.support.jobs import Jobs, with_duplicates
from tests.support.processes import DriverJob, command_line, descendants, kill
from tests.support.provider import ProviderUnderTest
from tests.support.sinks import BatchLog
from tests.support.standalone_cluster import StandaloneCluster

PARTITIONS = 4
SUCCESS = "Success"
KILLED = "TaskKilled"

BATCHES = [[SLOW], [BROKEN, BROKEN_LATE, LATER], [PASSED, *MEETING], [ZOMBIE, HELD, *MEETING]]
"""Special keys of each batch, after a first batch without any."""


class TaskEnd(NamedTuple):
    """End of a task attempt."""

    stage: int
    stage_attempt: int
    partition: int
    attempt: int
    id: int
    speculative: bool
    executor: str
    reason: str

    @property
    def task(self) -> tuple[int, int]:
        """The attempt's task."""
        return self.stage, self.partition


class Waiting(NamedTuple):
    """First attempt to reach a key, and the pid of its Python worker."""

    stage: int
    partition: int
    attempt: int
    worker: int

    @property
    def task(self) -> tuple[int, int]:
        """The attempt's task."""
        return self.stage, self.partition


def options(checkpoint_format: int) -> dict[str, Any]:
    """Options common to all starts of the driver."""
    conf = f"spark.sql.streaming.stateStore.checkpointFormatVersion={checkpoint_format}"
    return {"script": "attempts.py", "partitions": PARTITIONS, "conf": conf}


class Attempts:
    """The driver on a cluster, its task attempts, and the keys at which they wait."""

    def __init__(self, jobs: Jobs, cluster: StandaloneCluster, checkpoint_format: int) -> None:
        self.cluster = cluster
        self._hooks = jobs.folder / "hooks"
        self._log = jobs.folder / "tasks.jsonl"
        self.job: DriverJob = jobs.start(master=cluster.url, **options(checkpoint_format))

    def ends(self) -> list[TaskEnd]:
        """Ends of attempts so far, in order."""
        lines = self._log.read_text().split("\n")[:-1] if self._log.exists() else []
        return [TaskEnd(**json.loads(line)) for line in lines]

    def await_(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition that must hold before the driver ends."""
        try:
            came = self.job.await_(condition)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\nattempts ended:\n" + "\n".join(map(str, self.ends()[-20:]))) from None
        assert came, f"the driver ended before:\n{self.job.output()[-6000:]}"

    def await_end(self, condition: Callable[[TaskEnd], bool]) -> TaskEnd:
        """Waits for an attempt to end in a certain way."""
        self.await_(lambda: any(map(condition, self.ends())))
        return next(end for end in self.ends() if condition(end))

    def await_waiting(self, key: str) -> Waiting:
        """Waits until a task has reached a key."""
        mark = self._hooks / key
        self.await_(lambda: mark.exists() and mark.read_text().endswith("}"))
        return Waiting(**json.loads(mark.read_text()))

    def open(self, key: str) -> None:
        """Releases the tasks that wait at a key."""
        (self._hooks / f"{key}.open").touch()

    def executor_of(self, waiting: Waiting) -> int:
        """Pid of the executor that runs an attempt."""
        return next(pid for pid in self.cluster.executors() if waiting.worker in descendants(pid))


def executor_id(pid: int) -> str:
    """Spark's id of an executor."""
    words = command_line(pid).split()
    return words[words.index("--executor-id") + 1]


def a_copy_wins(run: Attempts) -> None:
    """A slow task has a copy on the other executor, which acknowledges first; the slow task is killed."""
    slow = run.await_waiting(SLOW)
    winner = run.await_end(lambda end: end.task == slow.task and end.reason == SUCCESS)
    loser = run.await_end(lambda end: end.task == slow.task and end.attempt == slow.attempt)
    assert loser.reason.startswith(KILLED)
    assert {winner.speculative, loser.speculative} == {True, False}
    assert loser.executor != winner.executor


def a_task_fails_after_its_ack(run: Attempts, key: str) -> None:
    """A task fails after its store was acknowledged: another attempt replaces it."""
    broken = run.await_waiting(key)
    failed = run.await_end(lambda end: end.task == broken.task and end.attempt == broken.attempt)
    assert "broken after its acknowledgement" in failed.reason
    second = run.await_end(lambda end: end.task == broken.task and end.reason == SUCCESS)
    assert second.attempt != failed.attempt


def a_copy_is_denied(run: Attempts) -> None:
    """A task is slow after its acknowledgement, while the checkpoint lacks others: the commit of its copy is denied."""
    passed = run.await_waiting(PASSED)
    denied = run.await_end(lambda end: end.task == passed.task and end.reason.startswith("TaskCommitDenied"))
    assert denied.attempt != passed.attempt


def finished_tasks_are_lost(run: Attempts) -> None:
    """An executor dies during the stage of the first operator: its finished tasks run again."""
    passed = run.await_waiting(PASSED)
    holder = run.executor_of(passed)
    victim = next(pid for pid in run.cluster.executors() if pid != holder)
    name = executor_id(victim)
    run.await_end(lambda end: end.stage == passed.stage and end.executor == name and end.reason == SUCCESS)
    kill(victim)
    again = run.await_end(lambda end: end.stage == passed.stage and end.reason == "Resubmitted")
    assert again.executor == name
    run.await_end(lambda end: end.task == again.task and end.executor != name and end.reason == SUCCESS)
    run.open(PASSED)


def a_zombie_is_late(run: Attempts) -> None:
    """An executor dies between the operators: both stages run again, while a task of the first attempt still waits.

    That task acknowledges after another attempt has, and is merely late.
    """
    # The victim has output of the first operator: tasks of that stage have met on both executors.
    zombie, held = run.await_waiting(ZOMBIE), run.await_waiting(HELD)
    assert zombie.stage == held.stage
    victim = run.executor_of(held)
    assert victim != run.executor_of(zombie)
    kill(victim)
    run.cluster.add_worker()  # a core for the other tasks, since the task that holds the stage open occupies one
    run.await_end(lambda end: end.stage == zombie.stage and end.reason.startswith("FetchFailed"))
    run.await_end(lambda end: end.task == zombie.task and end.stage_attempt > 0 and end.reason == SUCCESS)
    assert not any(end.task == zombie.task and end.stage_attempt == 0 for end in run.ends())
    run.open(ZOMBIE)
    late = run.await_end(lambda end: end.task == zombie.task and end.stage_attempt == 0)
    assert late.reason == SUCCESS
    run.open(HELD)


def starts_from_what_counts(sink: BatchLog, ends: dict[int, TaskEnd]) -> None:
    """Asserts that each batch started from the state of the attempts whose results are in the sink.

    Args:
        sink: results of all batches.
        ends: ends of the attempts, by attempt id, which is also the mark.
    """
    marks: dict[object, int] = {}
    for number, rows in sink.batches().items():
        for key, _, _, mark, mark_before in rows:
            state, result = int(str(mark_before)), marks.get(key, NOT_THERE)
            wrong = f"{key} has the state of {ends.get(state)}, not of {ends.get(result)}"
            assert state == result, f"batch {number}: {wrong}"
            marks[key] = int(str(mark))


def ids_in_commit(location: Path, batch: int) -> dict[int, list[str]]:
    """State ids that Spark counts for a batch, by operator and partition."""
    text = (location / "commits" / str(batch)).read_text().split("\n", 1)[1]
    ids = json.loads(text)["stateUniqueIds"]
    return {int(operator): [stores[0] for stores in partitions] for operator, partitions in ids.items()}


def checkpoints(location: Path) -> dict[int, CheckpointState]:
    """Completed checkpoint of each batch, read from its `_metadata`."""
    storage = LocalStorage(location)
    return {record.batch_id: read_checkpoint(storage, record) for record in list_completed(storage).records}


def ids_in_checkpoint(checkpoint: CheckpointState) -> dict[int, list[str]]:
    """State ids in a checkpoint, by operator and partition."""
    return {key.operator_id: ids for key, ids in checkpoint.state_ids().items()}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """A master and two workers."""
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize(
    "checkpoint_format", [pytest.param(1, id="ids-off", marks=pytest.mark.long), pytest.param(2, id="ids-on")]
)
def test_attempts_of_tasks(
    jobs: Jobs, rng: random.Random, cluster: StandaloneCluster, provider: ProviderUnderTest, checkpoint_format: int
) -> None:
    """All situations occur in one run of a query; another start then reads the resulting state."""
    if not provider.is_ours:
        pytest.skip("Spark's own providers let several attempts write")
    first, *batches = with_duplicates(rng, 1 + len(BATCHES))
    for number, (keys, batch) in enumerate(zip(BATCHES, batches, strict=True)):
        batch += [(at(0), key, number) for key in keys]  # the batch number, because a repeated key would be a duplicate
    for batch in [first, *batches]:
        jobs.feed.drop(batch)
    run = Attempts(jobs, cluster, checkpoint_format)
    a_copy_wins(run)
    a_task_fails_after_its_ack(run, BROKEN)
    a_task_fails_after_its_ack(run, BROKEN_LATE)
    run.open(LATER)
    a_copy_is_denied(run)
    finished_tasks_are_lost(run)
    a_zombie_is_late(run)
    jobs.finish(run.job)
    ends = {end.id: end for end in run.ends()}
    completed = checkpoints(jobs.location)
    dropped = completed[1 + next(n for n, keys in enumerate(BATCHES) if BROKEN in keys)].history[-1].failures
    assert dropped == {FailureReason.TASK_FAILED.value: 2}, "the tasks that failed had not acknowledged"
    for number in committed_batches(jobs.location) if checkpoint_format == 2 else ():
        assert ids_in_checkpoint(completed[number]) == ids_in_commit(jobs.location, number), f"batch {number}"
    for batch in with_duplicates(rng, 2):
        jobs.feed.drop(batch)
    jobs.finish(jobs.start(name="next", **options(checkpoint_format)))
    starts_from_what_counts(jobs.sink, ends)
