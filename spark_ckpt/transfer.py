"""Import and export: the state of a stopped query moves between a provider of Spark and spark-ckpt, as a Spark job."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spark_ckpt.completed import Owner
from spark_ckpt.errors import SessionConfigError
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.operations.errors import StateTransferError
from spark_ckpt.operations.exporting import FORMATS, Export, export_state
from spark_ckpt.operations.import_undo import Undo, undo_import
from spark_ckpt.operations.importing import Import, import_state
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.operations.state_jobs import (
    DescribedStore,
    ExportedPartition,
    FamilyDigest,
    ImportedPartition,
    SourceState,
)
from spark_ckpt.operations.verify import Progress
from spark_ckpt.storage import Storage, resolve
from spark_ckpt.storage.errors import UnsupportedSchemeError
from spark_ckpt.storage.hadoop import failure_of
from spark_ckpt.storage.resolve import SUPPORTED_SCHEMES

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
    TransferRefusedError
        There is nothing to import, or the query continued meanwhile. Nothing was switched.
    QueryMayRunError
        The query has written a short time ago. Nothing was changed.
    StateTransferError
        The state cannot be read, or not be written as read. Nothing was switched.
    SparkCkptError
        See `spark_ckpt.operations.importing.import_state`.
    """
    source = storage_of(spark, location)
    target = None if new_location is None else storage_of(spark, new_location)
    jobs = SessionStateJobs(spark, as_hadoop_writes(source.location))
    return import_state(source, jobs, target, settings=settings, force=force, dry_run=dry_run, progress=progress)


def undo_import_of_location(
    spark: SparkSession,
    location: str,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
) -> Undo:
    """Returns a query to the provider that its state was imported from, if it has not committed a batch since.

    Parameters
    ----------
    spark
        A classic session with the jar of spark-ckpt, for its file systems.
    location
        Checkpoint location of the query.
    settings
        Settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
    force
        True to proceed although a driver may be running.
    dry_run
        True to check everything and change nothing.

    Returns
    -------
    The provider that the query returns to.

    Raises
    ------
    TransferRefusedError
        There is no import in place to undo, or the query has committed a batch since. Nothing was changed.
    SparkCkptError
        See `spark_ckpt.operations.import_undo.undo_import`.
    """
    storage = storage_of(spark, location)
    return undo_import(storage, settings=settings, force=force, dry_run=dry_run, has_ended=partial(_has_ended, spark))


def export_location(
    spark: SparkSession,
    location: str,
    new_location: str,
    state_format: str,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> Export:
    """Writes the state of a stopped query for a provider of Spark, into a new location.

    Parameters
    ----------
    spark
        A classic session with the jar of spark-ckpt. The job runs on its cluster.
    location
        Checkpoint location of the query. It never changes.
    new_location
        A new, empty location for the query with Spark's provider.
    state_format
        `spark-hdfs` or `spark-rocksdb`.
    settings
        Settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
    force
        True to proceed although a driver is running here.
    dry_run
        True to check everything that can be checked without reading state, and write nothing.
    progress
        Called with the number of finished tasks and the total.

    Returns
    -------
    The exported checkpoint and stores.

    Raises
    ------
    TransferRefusedError
        The state cannot be exported, or the query continued meanwhile.
    StateTransferError
        The state cannot be read, or not be written as read.
    SessionConfigError
        `spark.speculation` is on.
    SparkCkptError
        See `spark_ckpt.operations.exporting.export_state`.
    """
    if state_format not in FORMATS:
        raise ValueError(f"state_format is '{state_format}'; it must be one of {', '.join(FORMATS)}")
    session: Any = spark
    if session.sparkContext.getConf().get("spark.speculation", "false").lower() == "true":
        raise SessionConfigError(
            "spark.speculation is true, so two attempts of a task could write the same files of an export: set it to "
            "false for this session"
        )
    source, target = storage_of(spark, location), storage_of(spark, new_location)
    jobs = SessionStateJobs(spark, as_hadoop_writes(source.location))
    return export_state(
        source,
        target,
        jobs,
        state_format,
        settings=settings,
        force=force,
        dry_run=dry_run,
        has_ended=partial(_has_ended, spark),
        progress=progress,
    )


def storage_of(spark: SparkSession, location: str) -> Storage:
    """Storage of a location, with the session's Hadoop settings.

    Args:
        spark: a classic session with the jar of spark-ckpt.
        location: path or URL. `s3://` stands for `s3a://` unless the session has another file system for it; a path
            without a scheme is on Hadoop's default file system.

    Raises:
        UnsupportedSchemeError: Hadoop has no file system for the scheme.
        S3fsNotFoundError: the location is on S3, and s3fs is not installed.
        SettingError: a setting of the file system is invalid.
    """
    session: Any = spark
    jvm = _transfer(session)
    found = json.loads(jvm.locate(session._jsparkSession, location))
    if "error" in found:
        raise UnsupportedSchemeError(location, location.partition(":")[0], SUPPORTED_SCHEMES)
    return resolve(found["location"], found["settings"], SessionFiles(jvm.files(session._jsparkSession)))


class SessionFiles:
    """Operations on Hadoop's file systems through a session's JVM (`HadoopCalls`).

    Args:
        files: the JVM's `SessionFiles`.
    """

    def __init__(self, files: Any) -> None:  # noqa: ANN401  (Py4J has no types)
        self._files = files

    def ask(
        self, operation: str, path: str, payload: bytes | memoryview = b"", **fields: object
    ) -> tuple[Mapping[str, Any], bytes | memoryview]:
        """Executes one operation on one path.

        Raises:
            FileNotFoundError, FileExistsError, PermissionError, HadoopError: as `failure_of` says.
        """
        header = json.dumps({"operation": operation, "path": path, **fields})
        reply = self._files.ask(header, bytearray(payload))
        answer: dict[str, Any] = json.loads(reply.header())
        if reply.isError():
            raise failure_of(path, answer)
        return answer, bytes(reply.payload())


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
        answer = _transfer(self._spark).describe(self._spark._jsparkSession, json.dumps(self._plan(source)))
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
        jvm = _transfer(self._spark)
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


def _has_ended(spark: Any, owner: Owner) -> bool:  # noqa: ANN401  (Py4J has no types)
    """True if the session's own JVM ran the query, and does so no more."""
    return bool(_transfer(spark).hasEnded(spark._jsparkSession, owner.pid, owner.run_id))


def _transfer(spark: Any) -> Any:  # noqa: ANN401  (Py4J has no types)
    return spark._jvm.org.apache.spark.sql.ckpt.transfer.StateTransfer
