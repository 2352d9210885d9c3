"""`elastic`: a thread beside a running query that changes its number of partitions as a policy says."""

from __future__ import annotations

import os
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.driver_jvm.files import storage_of
from spark_ckpt.elasticity.asking import Asking
from spark_ckpt.elasticity.decisions import ElasticDecision
from spark_ckpt.elasticity.following import Following, OnDecision
from spark_ckpt.elasticity.policy import Policy
from spark_ckpt.errors import PySparkNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.2

_MOST_FAILURES = 25
"""Polls in a row without an answer of the JVM after which it is gone."""

_STOP_SECONDS = 30.0


class Elastic:
    """A query that is being followed. The thread is a daemon, and ends with the query.

    Args:
        query: the query, or an object with its `isActive` and `lastProgress`.
        following: what follows it.
    """

    def __init__(self, query: Any, following: Following) -> None:  # noqa: ANN401  (PySpark may not be installed)
        self._query = query
        self._following = following
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="spark-ckpt-elastic", daemon=True
        )
        self._thread.start()

    @property
    def decisions(self) -> list[ElasticDecision]:
        """The decisions so far, oldest first: the last thousand."""
        return list(self._following.decisions)

    @property
    def errors(self) -> list[Exception]:
        """Errors of the policy, of `on_decision` and of the storage, oldest first. The query does not see them."""
        return list(self._following.errors)

    @property
    def is_active(self) -> bool:
        """True until the query, or `stop`, has ended the thread."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ends the thread, and withdraws a request that has no answer. The query runs on as it is."""
        self._stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        failures = 0
        while failures < _MOST_FAILURES and not self._stopping.wait(_POLL_SECONDS):
            try:
                is_active, progress = self._query.isActive, self._query.lastProgress
            except Exception as e:
                failures += 1
                self._following.keep(e)
                continue
            failures = 0
            self._following.step(progress)
            if not is_active:
                break
        self._following.end()


def elastic(
    query: StreamingQuery,
    policy: Policy,
    *,
    location: str | os.PathLike[str] | None = None,
    dry: bool = False,
    clock: Clock | None = None,
    on_decision: OnDecision | None = None,
) -> Elastic:
    """Lets a running query choose its number of partitions. The query is not stopped, and never sees an error of this.

    A thread of this process looks at each batch and asks the policy. If that wants another number, the thread asks the
    query, as `spark-ckpt rescale --running` does, and keeps the answer. It makes one request at a time. Batches that
    are much shorter than 0.2 s are not all seen.

    Args:
        query: a running query of a classic session set up by `spark_ckpt.configure`.
        policy: decides after each batch, such as `spark_ckpt.elasticity.BusyPolicy`.
        location: checkpoint location of the query, as a path or URL; by default its own.
        dry: True to tell the decisions only.
        clock: source of time.
        on_decision: called by the thread with each decision and each new outcome.

    Raises:
        PySparkNotFoundError: PySpark is not installed.
        TypeError: the query is one of Spark Connect, whose driver is elsewhere.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise PySparkNotFoundError from error
    java, context = getattr(query, "_jsq", None), SparkContext._active_spark_context
    if java is None or context is None:
        raise TypeError(f"{type(query).__name__} is not a query of a classic session in this process")
    spark = SparkSession(context, java.sparkSession())
    # Spark's `StreamingQueryWrapper` and `StreamExecution`.
    path = str(java.streamingQuery().resolvedCheckpointRoot()) if location is None else os.fspath(location)
    clock = clock or SystemClock()
    following = Following(
        query.name or query.id,
        policy,
        Asking(lambda: storage_of(spark, path), clock),
        lambda: _resources(spark),
        dry=dry,
        clock=clock,
        on_decision=on_decision,
    )
    return Elastic(query, following)


def _resources(spark: SparkSession) -> tuple[int | None, int | None]:
    """Cores and executors of the application; each None if it cannot be told."""
    context: Any = spark.sparkContext
    try:
        cores = int(context.defaultParallelism)
    except Exception:
        cores = None
    try:
        # With the driver, which is the only one in local mode.
        executors = max(1, len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1)
    except Exception:
        executors = None
    return cores, executors
