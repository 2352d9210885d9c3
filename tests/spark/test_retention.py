"""Retention: the configured number of checkpoints, and no file of subsumed ones."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.checkpoints import CheckpointJudge, completed_checkpoints, metadata_files
from tests.support.events import SCHEMA, events
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows


def files_of_checkpoints(location: Path) -> set[Path]:
    """All files in directories of single checkpoints; `os.walk` tolerates directories that disappear meanwhile."""
    walked = os.walk(location / "ckpt")
    return {Path(folder, name) for folder, _, names in walked if Path(folder).name.startswith("chk-") for name in names}


@pytest.mark.parametrize(
    ("inline_threshold", "retained"),
    [
        pytest.param(0, 2, id="files-2"),
        pytest.param(0, 3, id="files-3", marks=pytest.mark.long),
        pytest.param(1 << 20, 2, id="inline-2", marks=pytest.mark.long),
        pytest.param(1 << 20, 3, id="inline-3"),
    ],
)
def test_retained_count(
    retained: int,
    inline_threshold: int,
    spark: SparkSession,
    runner: QueryRunner,
    rng: random.Random,
    tmp_path: Path,
    provider: ProviderUnderTest,
    judge: CheckpointJudge,
) -> None:
    """The newest checkpoints remain, older ones are deleted with their files, and a restart works with what remains."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")
    spark.conf.set(CKPT_PREFIX + "retained", str(retained))
    spark.conf.set(CKPT_PREFIX + "inlineThreshold", str(inline_threshold))
    spark.conf.set(CKPT_PREFIX + "chain.maxDeltas", "3")
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")

    def plan(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*"), sf.sum("value"))

    for _ in range(2):
        for batch in events(rng, 6):
            feed.drop(batch)
        query = runner.start(plan(feed.stream(spark)), sink)
        query.processAllAvailable()
        query.stop()
        # Older checkpoints are deleted after the last task has its answer.
        runner.await_(lambda: len(completed_checkpoints(runner.location)) == retained)
    wanted = set(metadata_files(runner.location))
    runner.await_(lambda: files_of_checkpoints(runner.location) == wanted)
    judge.check(runner.location, all_retained=False)
    assert_same_rows(sink.rows(), [tuple(row) for row in plan(feed.table(spark)).collect()])
    shared = list((runner.location / "ckpt" / "shared").glob("[!.]*"))
    assert bool(shared) == (inline_threshold == 0), "the threshold had no effect"
