"""Spark jobs that read and write state, in a session (`StateJobs`)."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spark_ckpt.driver_jvm.objects import state_transfer
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.migrate.errors import StateTransferError
from spark_ckpt.migrate.state_jobs import (
    DescribedStore,
    ExportedPartition,
    FamilyDigest,
    ImportedPartition,
    SourceState,
)
from spark_ckpt.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUFFER_BYTES = 64 << 20
"""Memory of a task for rows; more rows go to a local file."""

_POLL_SECONDS = 0.2


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
        answer = state_transfer(self._spark).describe(self._spark._jsparkSession, json.dumps(self._plan(source)))
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
        stores = self._run("import", plan, progress)
        return {_described(store).key: [_imported(part) for part in store["parts"]] for store in stores}

    def export_state(
        self, source: SourceState, target: str, provider: str, checkpoint_format: int, progress: Progress
    ) -> Mapping[StoreKey, Sequence[ExportedPartition]]:
        """Writes the state below `state` of a location through a provider of Spark, reads it back, and compares.

        Raises:
            StateTransferError: the state cannot be read, or not be written as read.
        """
        plan = {
            "source": self._plan(source),
            "target": target,
            "provider": provider,
            "checkpoint_format": checkpoint_format,
        }
        stores = self._run("export", plan, progress)
        return {_described(store).key: [_exported(part) for part in store["parts"]] for store in stores}

    def _run(self, kind: str, plan: Mapping[str, object], progress: Progress) -> Sequence[Mapping[str, Any]]:
        """The stores in the result of a job, `import` or `export`."""
        group = f"spark-ckpt-{kind}-{uuid.uuid4()}"
        jvm = state_transfer(self._spark)
        start = jvm.importState if kind == "import" else jvm.exportState
        with _Watch(self._spark.sparkContext, group, progress):
            answer = start(self._spark._jsparkSession, json.dumps(plan), group)
        stores: Sequence[Mapping[str, Any]] = _checked(answer)["stores"]
        return stores

    def _plan(self, source: SourceState) -> dict[str, object]:
        ids = source.state_ids
        return {
            "location": self._location,
            "batch_id": source.batch_id,
            "settings": source.settings,
            "state_ids": None if ids is None else {str(operator): list(ids[operator]) for operator in ids},
            "partitions": {str(operator): source.partitions[operator] for operator in source.partitions},
        }


class _Watch:
    """Reports the finished tasks of a job group from a thread, and cancels the job if the caller is interrupted."""

    def __init__(self, context: Any, group: str, progress: Progress) -> None:  # noqa: ANN401
        self._context = context
        self._group = group
        self._progress = progress
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark-ckpt-tasks", daemon=True)

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
        store["has_families"],
        None if store["state_ids"] is None else tuple(store["state_ids"]),
    )


def _imported(part: Mapping[str, Any]) -> ImportedPartition:
    return ImportedPartition(
        part["rows"],
        part.get("path"),
        part.get("bytes", 0),
        np.array(part.get("groups", ()), np.uint32),
        np.array(part.get("offsets", ()), np.int64),
        _digests(part),
    )


def _exported(part: Mapping[str, Any]) -> ExportedPartition:
    return ExportedPartition(part["state_id"], _digests(part))


def _digests(part: Mapping[str, Any]) -> tuple[FamilyDigest, ...]:
    return tuple(FamilyDigest(family["name"], family["rows"], family["sum"]) for family in part["families"])
