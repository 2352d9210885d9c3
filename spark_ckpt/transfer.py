"""`import_location`: the state of a stopped query moves from a provider of Spark to spark-ckpt, as a Spark job."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spark_ckpt.format.keys import StoreKey
from spark_ckpt.operations.errors import StateTransferError
from spark_ckpt.operations.importing import Import, import_state
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.operations.state_jobs import DescribedStore, FamilyDigest, ImportedPartition, SourceState
from spark_ckpt.operations.verify import Progress
from spark_ckpt.storage import resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUFFER_BYTES = 64 << 20
"""Memory of a task for rows; more rows go to a local file."""

_POLL_SECONDS = 0.2


def import_location(
    spark: SparkSession,
    location: str,
    new_location: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> Import:
    """Takes over the state of a stopped query from a provider of Spark.

    Parameters
    ----------
    spark
        A classic session with the jar of spark-ckpt. The job runs on its cluster.
    location
        Checkpoint location of the query.
    new_location
        A new, empty location for the query with spark-ckpt; by default it keeps its location.
    settings
        Settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
    force
        True to proceed although the query has written a short time ago.
    dry_run
        True to check everything that can be checked without reading state, and write nothing.
    progress
        Called with the number of finished tasks and the total.

    Returns
    -------
    The imported stores, and the new checkpoint.

    Raises
    ------
    ImportRefusedError
        There is nothing to import, or the query continued meanwhile. Nothing was switched.
    QueryMayRunError
        The query has written a short time ago. Nothing was changed.
    StateTransferError
        The state cannot be read, or not be written as read. Nothing was switched.
    SparkCkptError
        See `spark_ckpt.operations.importing.import_state`.
    """
    source = resolve(location)
    target = None if new_location is None else resolve(new_location)
    jobs = SessionStateJobs(spark, as_hadoop_writes(source.location))
    return import_state(source, jobs, target, settings=settings, force=force, dry_run=dry_run, progress=progress)


class SessionStateJobs:
    """Spark jobs on the state of one location, in a session.

    Args:
        spark: a classic session with the jar of spark-ckpt.
        location: the checkpoint location, as Hadoop writes it.
        buffer_bytes: memory of a task for rows.
    """

    def __init__(self, spark: SparkSession, location: str, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._spark: Any = spark
        self._location = location
        self._buffer_bytes = buffer_bytes

    @property
    def spark_version(self) -> str:
        """Version of Spark."""
        return str(self._spark.version)

    def stores(self, source: SourceState) -> Sequence[DescribedStore]:
        """The stores of the location, by operator and name.

        Raises:
            StateTransferError: Spark's metadata or schemas are missing or damaged.
        """
        answer = self._jvm.describe(self._spark._jsparkSession, json.dumps(self._plan(source)))
        return [_described(store) for store in _checked(answer)["stores"]]

    def import_state(
        self, source: SourceState, target: str, key_group_factors: Sequence[int], progress: Progress
    ) -> Mapping[StoreKey, Sequence[ImportedPartition]]:
        """Writes the state as base snapshots below `ckpt/shared` of a location, reads them back, and compares.

        Raises:
            StateTransferError: the state cannot be read, or not be written as read.
        """
        plan = {
            "source": self._plan(source),
            "target": target,
            "key_group_factors": list(key_group_factors),
            "buffer_bytes": self._buffer_bytes,
        }
        group = f"spark-ckpt-import-{uuid.uuid4()}"
        with _Watch(self._spark.sparkContext, group, progress):
            answer = self._jvm.importState(self._spark._jsparkSession, json.dumps(plan), group)
        stores = _checked(answer)["stores"]
        return {_described(store).key: [_imported(part) for part in store["parts"]] for store in stores}

    @property
    def _jvm(self) -> Any:  # noqa: ANN401  (Py4J has no types)
        return self._spark._jvm.org.apache.spark.sql.ckpt.transfer.StateTransfer

    def _plan(self, source: SourceState) -> dict[str, object]:
        ids = source.state_ids
        return {
            "location": self._location,
            "batch_id": source.batch_id,
            "settings": source.settings,
            "state_ids": None if ids is None else {str(operator): list(ids[operator]) for operator in ids},
        }


class _Watch:
    """Reports the finished tasks of a job group from a thread, and cancels the job if the caller is interrupted."""

    def __init__(self, context: Any, group: str, progress: Progress) -> None:  # noqa: ANN401
        self._context = context
        self._group = group
        self._progress = progress
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if kind is not None:
            self._context.cancelJobGroup(self._group)

    def _run(self) -> None:
        tracker = self._context.statusTracker()
        while not self._ended.wait(_POLL_SECONDS):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            known = [stage for stage in stages if stage]
            if known:
                self._progress(sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known))


def _checked(answer: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(answer)
    if "error" in result:
        raise StateTransferError(result["error"], result["message"])
    return result


def _described(store: Mapping[str, Any]) -> DescribedStore:
    return DescribedStore(
        store["operator_id"],
        store["name"],
        store["store"],
        store["partitions"],
        store["state_format_version"],
        tuple(store["families"]),
    )


def _imported(part: Mapping[str, Any]) -> ImportedPartition:
    return ImportedPartition(
        part["rows"],
        part.get("path"),
        part.get("bytes", 0),
        np.array(part.get("groups", ()), np.uint32),
        np.array(part.get("offsets", ()), np.int64),
        tuple(FamilyDigest(family["name"], family["rows"], family["sum"]) for family in part["families"]),
    )
