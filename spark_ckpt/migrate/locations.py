"""Import and export: the state of a stopped query moves between a provider of Spark and spark-ckpt, as a Spark job."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_ckpt.driver_jvm.files import storage_of
from spark_ckpt.driver_jvm.objects import has_ended
from spark_ckpt.errors import SessionConfigError
from spark_ckpt.migrate.exporting import FORMATS, Export, export_state
from spark_ckpt.migrate.importing import Import, import_state
from spark_ckpt.migrate.session_jobs import SessionStateJobs
from spark_ckpt.migrate.undo import Undo, undo_import
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    """Imports the state of a stopped query from a provider of Spark.

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
        See `spark_ckpt.migrate.importing.import_state`.
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
        See `spark_ckpt.migrate.undo.undo_import`.
    """
    storage = storage_of(spark, location)
    return undo_import(storage, settings=settings, force=force, dry_run=dry_run, has_ended=partial(has_ended, spark))


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
        See `spark_ckpt.migrate.exporting.export_state`.
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
        has_ended=partial(has_ended, spark),
        progress=progress,
    )
