"""Driver program whose tasks wait or fail at special keys, and that records how each task attempt ended.

It is the running count of `running_count.py` with hooks after the acknowledgement of the first operator, and before
and after that of the second. `folder/hooks` has a file per key reached, which names the first attempt to reach it; a
waiting task waits for a file with the key's name and `.open`. `folder/tasks.jsonl` has one line per ended attempt.

Each attempt marks the keys it counts with its own id. The mark becomes part of the state and of the result, which also
has the previous mark from the state, so that the result shows whose state a batch started from.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupState

from tests.spark.jobs.running_count import parse, run, session
from tests.support.class_archive import quick_start

PASSED = "passed"
"""After the first operator has acknowledged, its first task with this key waits."""

MEETING = tuple(f"meeting-{number}" for number in range(16))
"""After the first operator has acknowledged, its tasks with such a key or `PASSED` wait until two executors have one.

Every partition has some of these keys. An executor may be busy with a killed task for seconds; without them the other
executor would run the whole stage.
"""

BROKEN = "broken"
"""After the first operator has acknowledged, its first task with this key fails."""

SLOW, ZOMBIE = "slow", "zombie"
"""Before the second operator acknowledges, its first task with such a key waits."""

HELD, LATER = "held", "later"
"""Before the second operator acknowledges, every task with such a key waits."""

BROKEN_LATE = "broken-late"
"""After the second operator has acknowledged, its first task with this key fails."""

COUNTED = "key string, n long, total long, mark long, mark_before long"
STATE = "n long, total long, mark long"

NOT_THERE = -1
"""Previous mark of a key without state."""

CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": quick_start(),
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    # Only the last task of a stage gets a copy: a copy of a task that waits for another would occupy the other's core.
    "spark.speculation.quantile": "0.75",
    "spark.speculation.multiplier": "2",
    "spark.task.maxFailures": "10",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.locality.wait": "0",
}


_MAX_REASON = 2000
"""Maximum length in characters; the rest is stack traces and figures."""


class TaskEnds:
    """SparkListener that writes one line of JSON per ended task attempt."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("on"):
            raise AttributeError(name)
        return lambda *_: None

    def onTaskEnd(self, event: Any) -> None:  # noqa: N802, the name is Spark's
        """Writes the line; called by Spark."""
        info = event.taskInfo()
        line = {
            "stage": event.stageId(),
            "stage_attempt": event.stageAttemptId(),
            "partition": info.partitionId(),
            "attempt": info.attemptNumber(),
            "id": info.taskId(),
            "speculative": info.speculative(),
            "executor": info.executorId(),
            "reason": event.reason().toString()[:_MAX_REASON],
        }
        with self._file.open("a") as out:
            out.write(json.dumps(line) + "\n")

    class Java:
        """Java interface of the listener, for Py4J."""

        implements = ["org.apache.spark.scheduler.SparkListenerInterface"]  # noqa: RUF012, py4j wants a list


def watch(spark: SparkSession, file: Path) -> None:
    """Records how tasks end from now on."""
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    spark.sparkContext._jsc.sc().addSparkListener(TaskEnds(file))


def plan(frame: DataFrame, hooks: Path) -> DataFrame:
    """The running count, with its hooks."""
    # Functions for executors must be self-contained: this program cannot be imported there.
    passed, meeting, broken, broken_late = PASSED, MEETING, BROKEN, BROKEN_LATE
    first_only, everyone, not_there = (SLOW, ZOMBIE), (HELD, LATER), NOT_THERE

    def this_task() -> TaskContext:
        task = TaskContext.get()
        assert task is not None
        return task

    def first(key: str) -> bool:
        """True if no attempt has reached the key before."""
        try:
            with (hooks / key).open("x") as mark:
                task = this_task()
                where = {"stage": task.stageId(), "partition": task.partitionId(), "attempt": task.attemptNumber()}
                mark.write(json.dumps(where | {"worker": os.getpid()}))
        except FileExistsError:
            return False
        return True

    def wait(key: str) -> None:
        while not (hooks / f"{key}.open").exists():
            time.sleep(0.02)

    def meet() -> None:
        stage = f"stage-{this_task().stageId()}"
        # All Python workers of an executor share one daemon as their parent.
        (hooks / f"{stage}-{os.getppid()}").touch()
        while len(list(hooks.glob(f"{stage}-*"))) < 2:
            time.sleep(0.02)

    def between(key: str) -> str:
        if key == passed or key in meeting:
            meet()
        if key == passed and first(key):
            wait(key)
        if key == broken and first(key):
            raise RuntimeError("broken after its acknowledgement")
        return key

    def count(key: tuple[str], batches: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        name = key[0]
        is_first = name in first_only + everyone and first(name)
        if is_first or name in everyone:
            wait(name)
        n, total, mark_before = state.get if state.exists else (0, 0, not_there)
        for batch in batches:
            n, total = n + len(batch), total + int(batch["value"].sum())
        mark = this_task().taskAttemptId()
        state.update((n, total, mark))
        yield pd.DataFrame({"key": [name], "n": [n], "total": [total], "mark": [mark], "mark_before": [mark_before]})

    def after(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        keys: set[str] = set()
        for batch in batches:
            keys.update(batch["key"])
            yield batch
        # End of the input: the state store below has committed and is acknowledged.
        if broken_late in keys and first(broken_late):
            raise RuntimeError("broken after its acknowledgement")

    single = frame.dropDuplicates(["ts", "key", "value"])
    single = single.withColumn("key", sf.udf(between, "string")("key"))
    counted = single.groupBy("key").applyInPandasWithState(count, COUNTED, STATE, "update", "NoTimeout")
    return counted.mapInPandas(after, COUNTED)


def main(arguments: list[str]) -> int:
    """Runs the query to the end of its input."""
    options = parse(arguments)
    hooks = options.folder / "hooks"
    hooks.mkdir(exist_ok=True)
    spark = session(options, **CONF)
    watch(spark, options.folder / "tasks.jsonl")
    return run(spark, options.folder, lambda frame: plan(frame, hooks))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
