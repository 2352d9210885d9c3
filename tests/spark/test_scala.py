"""transformWithState in Scala, in a driver that is killed in the middle."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.events import events
from tests.support.jobs import Jobs
from tests.support.provider import ProviderUnderTest
from tests.support.scala import compile_jar
from tests.support.sinks import Rows, assert_same_rows

SOURCE = Path(__file__).parent / "scala" / "RunningMaximum.scala"


@pytest.mark.core
def test_value_list_and_map_survive_a_kill(
    jobs: Jobs, rng: random.Random, provider: ProviderUnderTest, tmp_path: Path
) -> None:
    if provider.name == "hdfs":
        pytest.skip("Spark runs transformWithState with its RocksDB provider or ours")
    jar = compile_jar(SOURCE, tmp_path / "scala")
    conf = [f"spark.driver.extraClassPath={jar}", f"spark.executor.extraClassPath={jar}"]
    for batch in events(rng, 8):
        jobs.feed.drop(batch)
    job = jobs.start(script="scala_count.py", conf=conf)
    assert job.await_batches(rng.randrange(2, 6)), job.output()[-6000:]
    job.kill()
    last = jobs.start(script="scala_count.py", conf=conf)
    assert last.wait() == 0, last.output()[-6000:]
    values: dict[str, list[int]] = {}
    for _, key, value in jobs.feed.rows():
        values.setdefault(str(key), []).append(int(str(value)))
    expected: Rows = [(key, len(all_), max(all_), len(set(all_))) for key, all_ in values.items()]
    assert_same_rows(jobs.sink.rows(), expected)
    jobs.judge.check(jobs.location)
