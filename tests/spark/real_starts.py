"""A stopped query whose checkpoint location is put back, damaged and started again, any number of times."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_ckpt.spark_files.logs import BatchLog, SparkBatches, SparkLog, entry_name
from spark_ckpt.storage import LocalStorage
from tests.support.provider import HDFS, PROVIDER_KEY
from tests.support.sinks import Rows

STARTS_AND_IS_RIGHT, IS_WRONG, FAILS = "starts and is right", "starts and is wrong", "fails"
"""Outcomes of a start."""

OTHER_SETTINGS = {
    PROVIDER_KEY: HDFS.class_name,
    "spark.sql.function.protobufExtensions.enabled": "true",
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "true",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.streaming.aggregation.stateFormatVersion": "1",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "1",
    "spark.sql.streaming.join.stateFormatVersion": "1",
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    "spark.sql.streaming.stateStore.compression.codec": "zstd",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion": "4",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": "1",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "true",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "false",
}
"""Other values of settings that a query keeps from its first start: a start that has lost one shows it."""


class Restarts:
    """A query over input of which a part is not processed yet, and copies of its location at its ends.

    Args:
        spark: session of the query.
        folder: folder of the location.
        plan: returns the query, over all of its input.
        mode: its output mode.
    """

    def __init__(self, spark: SparkSession, folder: Path, plan: Callable[[], DataFrame], mode: str) -> None:
        self.location = folder / "checkpoint"
        self._spark = spark
        self._whole = folder / "whole"
        self._plan = plan
        self._mode = mode
        self._truth: dict[int, Rows] = {}
        self._ids: list[str] = []
        self._settings: dict[str, str] = {}
        self.error = ""
        """Why the last start failed."""

    def run(self, location: Path | None = None) -> dict[int, Rows]:
        """Runs the query until all input is processed. Returns the rows of each batch that has run.

        Raises:
            PySparkException, Py4JJavaError: the query fails, or does not start.
        """
        found: dict[int, Rows] = {}

        def collect(frame: DataFrame, batch_id: int) -> None:
            found[batch_id] = [tuple(row) for row in frame.collect()]

        writer = self._plan().writeStream.outputMode(self._mode).foreachBatch(collect)
        query = writer.option("checkpointLocation", str(location or self.location)).start()
        self._ids.append(str(query.id))
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return found

    def keep(self, add_input: Callable[[int], None], batches: int, *, is_committed: bool = True) -> None:
        """Runs the query over input of its first batches, and keeps the location. Then adds input of one more, and
        notes what an undamaged start makes of it, in a session with other settings.

        Args:
            add_input: adds the input of so many batches.
            batches: number of batches before the location is kept.
            is_committed: False to keep the location without the commit of its last batch.
        """
        add_input(batches)
        self._truth.update(self.run())
        if not is_committed:
            (self.location / f"commits/{self._newest()}").unlink()
        shutil.copytree(self.location, self._whole)
        add_input(1)
        for setting in OTHER_SETTINGS.keys() & self._pinned().keys():
            self._spark.conf.set(setting, OTHER_SETTINGS[setting])
        self._truth.update(self.run())
        self._settings = self._pinned()
        self.put_back()

    @property
    def before_committed(self) -> str | None:
        """Entry of the offset log before that of the last committed batch, if a start reads it only once a later batch
        is committed: the start of a savepoint reads it, too, as savepoints end with committed batches."""
        batches = SparkBatches.of(SparkLog(LocalStorage(self._whole)))
        last = batches.last_committed
        return entry_name(BatchLog.OFFSETS, last - 1) if batches.repeats_after(last) else None

    def put_back(self) -> Path:
        """Puts the kept location back. Returns it."""
        shutil.rmtree(self.location)
        shutil.copytree(self._whole, self.location)
        return self.location

    def outcome(self, restored: Path | None = None) -> str:
        """Starts the query, and compares what it does with an undamaged start.

        Args:
            restored: location to start it on, with another query id; by default, the one as it is now.
        """
        self.error = ""
        try:
            rows = self.run(restored)
        except (PySparkException, Py4JJavaError) as e:
            self.error = _summary(str(e))
            return FAILS
        before = {batch: kept for batch, kept in self._truth.items() if batch < min(rows, default=0)}
        # Sinks tell queries apart by their ids.
        is_right = restored is not None or self._ids[-1] == self._ids[0]
        is_right &= self._final({**before, **rows}) == self._final(self._truth)
        is_right &= self._pinned(restored) == self._settings
        return STARTS_AND_IS_RIGHT if is_right else IS_WRONG

    def _final(self, batches: Mapping[int, Rows]) -> Counter[tuple[object, ...]]:
        """Content of the sink after these batches."""
        rows = [row for batch in sorted(batches) for row in batches[batch]]
        return Counter(rows if self._mode == "append" else {row[0]: row for row in rows}.values())

    def _newest(self) -> int:
        return SparkLog(LocalStorage(self.location)).batches(BatchLog.OFFSETS)[-1]

    def _pinned(self, location: Path | None = None) -> dict[str, str]:
        """Settings of the newest batch."""
        log = SparkLog(LocalStorage(location or self.location))
        return dict(log.offsets(log.batches(BatchLog.OFFSETS)[-1]).conf)


def _summary(error: str) -> str:
    """First line of an error, and its deepest cause."""
    lines = error.splitlines() or [error]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return " | ".join(line[:500] for line in (lines[0], *causes[-1:]))
