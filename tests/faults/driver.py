"""Driver program of the fault table: runs the query of one cell after another in one Spark application.

Killed and started again with the same folders, it continues its current run.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.faults.folder import CellFolder, Run
from tests.faults.injection import SLOW_SECONDS, Injector, arm, disarm, has_struck
from tests.faults.points import HANGS_FOR, PARTITIONS, Kind, Place
from tests.spark.jobs.running_count import plan
from tests.support.processes import find_below, kill
from tests.support.provider import CKPT, CKPT_PREFIX
from tests.support.session import open_session
from tests.support.sinks import BatchLog

MAX_STARTS = 4
FAULTY_RUN = 1
SIDE_PROCESS = "tests.faults.side_process"

# Ours, else the class of Spark's innermost error: a failed checkpoint reaches the query through the sink's error.
_ERRORS = (re.compile(r"\[([A-Z]\w+Error)\]"), re.compile(r".*\[([A-Z_]+)\]", re.DOTALL))


class StruckSink(BatchLog):
    """A sink that the fault strikes once a batch is written."""

    def __init__(self, folder: Path, injector: Injector) -> None:
        super().__init__(folder, "update")
        self._injector = injector

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Stores one batch, and may fail afterwards."""
        super().write(frame, batch_id)
        kind = self._injector.strike(Place.SINK, "write")
        if kind is Kind.ERROR:
            raise OSError("injected")
        if kind is Kind.LATE:
            time.sleep(SLOW_SECONDS)


def kill_coordinator() -> None:
    """Kills the side process with SIGKILL."""
    for pid in find_below(os.getpid(), SIDE_PROCESS):
        kill(pid)


def run_cell(spark: SparkSession, folder: CellFolder) -> None:
    """Runs the remaining runs of a cell. A query that fails repeatedly is left as it is, for the judge."""
    for key, value in folder.cell.conf().items():
        spark.conf.set(key, value)
    for number in folder.stages():
        if number == FAULTY_RUN:
            arm(folder.folder, folder.cell)
            arm_disk(spark, folder)
        for _ in range(MAX_STARTS):
            if run_query(spark, folder):
                break
            if folder.cell.kind is Kind.POISON:
                disarm(folder.folder)  # stands for a user who has found the cause
        disarm(folder.folder)
        disarm_disk(spark, folder)
    folder.finish()


def arm_disk(spark: SparkSession, folder: CellFolder) -> None:
    """Arms a fault of the local disk in the driver's JVM, unless it has already struck."""
    point = folder.cell.point
    if point.place is Place.LOCAL_DISK and not has_struck(folder.folder):
        disk_of(spark).arm(str(folder.folder), point.what, folder.cell.kind.name, point.skip)


def disarm_disk(spark: SparkSession, folder: CellFolder) -> None:
    """Disarms it."""
    if folder.cell.point.place is Place.LOCAL_DISK:
        disk_of(spark).disarm()


def disk_of(spark: SparkSession) -> Any:
    """`StruckDisk.java` in the driver's JVM."""
    return spark.sparkContext._jvm.io.github.sparkckpt.engine.pages.StruckDisk  # type: ignore[union-attr]


def run_query(spark: SparkSession, folder: CellFolder) -> bool:
    """Runs the query once.

    Returns:
        True if the run reached the end of the input.
    """
    sink = StruckSink(folder.out, Injector(folder.folder, kill_coordinator))
    writer = sink.attach(plan(folder.feed.stream(spark), None).writeStream)
    beside = start_beside(spark, folder) if folder.cell.point.beside else None
    query = writer.option("checkpointLocation", str(folder.location)).trigger(availableNow=True).start()
    error = None
    try:
        query.awaitTermination()
    except StreamingQueryException as e:
        error = next((named[1] for named in (pattern.search(str(e)) for pattern in _ERRORS) if named), str(e))
    if beside is not None:
        beside.awaitTermination()  # must not fail
    folder.note(Run(failed_tasks(spark, query), error))
    return error is None


def start_beside(spark: SparkSession, folder: CellFolder) -> StreamingQuery:
    """Starts the driver's other query: identical, with a location of its own."""
    writer = BatchLog(folder.out_beside, "update").attach(plan(folder.feed.stream(spark), None).writeStream)
    return writer.option("checkpointLocation", str(folder.location_beside)).trigger(availableNow=True).start()


def failed_tasks(spark: SparkSession, query: StreamingQuery) -> int:
    """Number of failed attempts of the query's tasks."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(query.runId)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numFailedTasks for stage in stages if stage is not None)


def main(arguments: list[str]) -> None:
    """Runs the cells of all given folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--disk", type=Path, help="jar with `StruckDisk.java`, for faults of the local disk")
    parser.add_argument("cells", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    conf = {
        CKPT_PREFIX + "python": str(options.python),
        CKPT_PREFIX + "bridge.silence": HANGS_FOR,
        "spark.sql.shuffle.partitions": str(PARTITIONS),
    }
    if options.disk is not None:
        conf["spark.jars"] = str(options.disk)
    spark = open_session(CKPT, options.folder, master="local[2,4]", conf=conf)
    if options.disk is not None:
        disk_of(spark).install(spark.sparkContext._jsc.sc())
    for path in options.cells:
        folder = CellFolder(path)
        if not folder.is_done:
            run_cell(spark.newSession(), folder)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
