"""A count whose state is large enough for merged deltas."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.checkpoint.chains import all_entries
from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.location.listing import list_completed
from spark_ckpt.storage import LocalStorage
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows

KEYS, CHANGED = 12_000, 300
"""Keys of the state, and about the number of those that a batch changes."""


def changed_keys(batch: int) -> range:
    """Keys that a batch after the first changes."""
    return range(batch * 7, KEYS, KEYS // CHANGED)


class LargeCount:
    """A count over many keys; each batch after the first changes a few of them."""

    def __init__(self, spark: SparkSession, runner: QueryRunner, tmp_path: Path) -> None:
        self._spark, self._runner = spark, runner
        self._feed = runner.feed("rows", "key STRING, value INT")
        self._sink = BatchLog(tmp_path / "out", "update")
        self._dropped = 0

    def run(self, batches: int) -> None:
        """Runs the query on that many batches of new input, and stops it."""
        for _ in range(batches):
            keys = range(KEYS) if not self._dropped else changed_keys(self._dropped)
            self._feed.drop([(f"key-{key}", self._dropped) for key in keys])
            self._dropped += 1
        self._runner.drain(self._plan(self._feed.stream(self._spark)), self._sink)

    def newest(self) -> CheckpointState:
        """The newest checkpoint."""
        storage = LocalStorage(self._runner.location)
        return read_checkpoint(storage, list_completed(storage).records[-1])

    def spans(self) -> list[int]:
        """Numbers of versions that the deltas of the newest checkpoint cover."""
        deltas = [entry for entry in all_entries(self.newest().table) if not entry.is_base]
        return [delta.version - delta.first_version + 1 for delta in deltas]

    def longest_chain(self) -> int:
        """Largest number of segments that a store would load now."""
        return max(len(chain.entries) for chains in self.newest().table.values() for chain in chains)

    def expected(self) -> list[tuple[object, ...]]:
        """The batch answer."""
        return [tuple(row) for row in self._plan(self._feed.table(self._spark)).collect()]

    def finish(self) -> None:
        """Asserts that the result and the location are right."""
        assert_same_rows(self._runner.finish(self._sink), self.expected())

    def _plan(self, frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*").alias("count"), sf.sum("value").alias("sum"))
