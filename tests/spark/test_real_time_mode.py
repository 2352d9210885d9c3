"""Queries with state in Spark's real-time mode, from Kafka to Kafka, under real kills."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.docs.pages import DOCS, blocks
from tests.faults.injection import arm
from tests.faults.points import Cell, Kind, point_named
from tests.faults.real_time import run_cells
from tests.faults.table import faulty_python, markdown
from tests.spark.jobs.real_time import ALLOWLIST_KEY, PARTITIONS
from tests.spark.processors import RememberingRows
from tests.spark.real_time_queries import RealTimeQueries
from tests.support.checkpoints import CheckpointJudge, committed_batches, completed_checkpoints, log_records
from tests.support.kafka import KafkaBroker
from tests.support.provider import CKPT, CKPT_PREFIX, PROVIDER_KEY
from tests.support.real_time import RealTimeStream
from tests.support.scala import compile_jar
from tests.support.spark_version import since
from tests.support.waiting import eventually

pytestmark = [pytest.mark.core, since("4.3", "state in real-time mode")]

Start = Callable[[Sequence[str]], RealTimeQueries]

SETTLED_COUNTS = Path(__file__).parent / "scala" / "SettledCounts.scala"


@pytest.fixture
def queries(kafka: KafkaBroker, tmp_path: Path, rng: random.Random) -> Iterator[Start]:
    """Makes the queries of a test."""
    made: list[RealTimeQueries] = []

    def make(names: Sequence[str]) -> RealTimeQueries:
        made.append(RealTimeQueries(kafka, tmp_path, CKPT, rng, names))
        return made[-1]

    yield make
    for some in made:
        some.stop()


# ---- what is refused -------------------------------------------------------------------------------------------------


def files(location: Path) -> dict[Path, bytes]:
    """Content of all files of a location."""
    return {path: path.read_bytes() for path in location.rglob("*") if path.is_file()}


def writer(frame: DataFrame, location: Path) -> DataStreamWriter:
    """A query that ends nowhere, in the only mode of output that real-time mode has."""
    ending = frame.writeStream.outputMode("update").foreach(lambda row: None)
    return ending.option("checkpointLocation", str(location))


def real_time(frame: DataFrame, location: Path) -> DataStreamWriter:
    """The query in real-time mode."""
    return writer(frame, location).trigger(realTime="5 seconds")  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def begun(spark: SparkSession, tmp_path: Path) -> tuple[DataFrame, Path]:
    """A query with one batch in its checkpoint location; a batch that has begun is left uncommitted."""
    spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2")
    spark.conf.set(PROVIDER_KEY, CKPT.class_name)
    stream = RealTimeStream(spark)
    counts = stream.frame().groupBy("value").count()
    stream.add(1, 2, 1)
    location = tmp_path / "checkpoint"
    writer(counts, location).trigger(availableNow=True).start().awaitTermination()
    assert committed_batches(location) == [0]
    (location / "offsets" / "1").write_bytes((location / "offsets" / "0").read_bytes())
    (location / "offsets" / ".1.crc").unlink(missing_ok=True)
    return counts, location


def test_state_is_refused_without_the_setting(spark: SparkSession, begun: tuple[DataFrame, Path]) -> None:
    """Before Spark deletes the offsets of the batch that is not committed."""
    counts, location = begun
    spark.conf.unset(PROVIDER_KEY)
    before = files(location)
    with pytest.raises(Py4JJavaError, match=rf"\[SessionConfigError\] .*{CKPT_PREFIX}realTimeMode=experimental"):
        real_time(counts, location).start()
    assert files(location) == before


def test_state_is_refused_without_our_file_manager(spark: SparkSession, begun: tuple[DataFrame, Path]) -> None:
    counts, location = begun
    spark.conf.unset(PROVIDER_KEY)
    spark.conf.set(CKPT_PREFIX + "realTimeMode", "experimental")
    spark.conf.unset("spark.sql.streaming.checkpointFileManagerClass")
    before = files(location)
    with pytest.raises(Py4JJavaError, match=r"\[SessionConfigError\] .*CheckpointLogFileManager"):
        real_time(counts, location).start()
    assert files(location) == before


def test_transform_with_state_is_refused_without_its_setting(
    spark: SparkSession, begun: tuple[DataFrame, Path]
) -> None:
    """Spark's own message names an operator that the user has not written."""
    _, location = begun
    spark.conf.unset(PROVIDER_KEY)
    spark.conf.set(CKPT_PREFIX + "realTimeMode", "experimental")
    before = files(location)
    other = RealTimeStream(spark).frame().groupBy("value")
    processed = other.transformWithState(RememberingRows(), "value int", "update", "none")
    with pytest.raises(Py4JJavaError, match=rf"\[SessionConfigError\] .*{ALLOWLIST_KEY}=false"):
        real_time(processed, location).start()
    assert files(location) == before


def test_a_session_with_our_provider_runs_no_query(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own refusal, stateless queries included. In a session without the setting they run."""
    spark.conf.set(PROVIDER_KEY, CKPT.class_name)
    stream, location = RealTimeStream(spark), tmp_path / "checkpoint"
    for frame in (stream.frame(), stream.frame().groupBy("value").count()):
        with pytest.raises(IllegalArgumentException, match=f"REAL_TIME_MODE.*{PROVIDER_KEY}"):
            real_time(frame, location).start()
    assert not location.exists()
    (block,) = blocks(DOCS / "real-time-mode.md", "python")
    names = {"spark": spark}
    exec(block, names)
    stream = RealTimeStream(names["real_time"])
    stream.add(1, 2)
    query = real_time(stream.frame(), location).start()
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert committed_batches(location)


@pytest.mark.long
@pytest.mark.slow
def test_a_new_location_takes_rocksdb_with_a_warning(queries: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CKPT_TEST_LOG_LEVEL", "WARN")
    new = queries(["counts"])
    new.send()
    job = new.start(around=False)
    new.await_batches(job, 1)
    new.finish(job)
    (warning,) = [line for line in job.output().splitlines() if "WITHOUT spark-ckpt" in line]
    assert f"{PROVIDER_KEY}={CKPT.class_name}" in warning
    assert str(new.location("counts")) in warning
    assert not completed_checkpoints(new.location("counts"))


# ---- kills -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_kills_of_driver_and_coordinator(queries: Start, judge: CheckpointJudge) -> None:
    """From micro-batches to real time and back on one location; in between, the driver and the coordinator die."""
    both = queries(["counts", "unique"])
    both.send()
    job = both.start()
    both.await_batches(job)
    for _ in range(2):
        both.send()
        both.kill_coordinator(job)
        both.await_batches(job)
    both.send()
    both.kill_at_random(job)
    job = both.start()
    both.send()
    both.await_batches(job)
    both.send()
    both.kill_after_offsets(job, "counts")
    job = both.start()
    both.send()
    both.await_batches(job)
    both.send()
    both.finish(job)
    both.check(judge)
    assert not both.failures("counts") + both.failures("unique")


@pytest.mark.slow
def test_transform_with_state_and_timers(queries: Start, tmp_path: Path, judge: CheckpointJudge) -> None:
    """Timers fire while a batch is open, before and after a kill of the driver."""
    settled, jar = queries(["settled"]), compile_jar(SETTLED_COUNTS, tmp_path / "scala")
    settled.send()
    job = settled.start(jar=jar)
    settled.await_batches(job)
    before = len(settled.outputs("settled"))
    settled.send()
    eventually(lambda: any(row[2] for row in settled.outputs("settled")[before:]), what="timers fire")
    settled.send()
    settled.kill_at_random(job)
    job = settled.start(jar=jar)
    settled.await_batches(job)
    settled.send()
    settled.finish(job)
    settled.check(judge)
    assert not settled.failures("settled")


DURABLE_AND_KILLED = Cell(point_named("real time: record durable, answer to the end offsets"), Kind.KILL_DRIVER)
SOME = (
    Cell(point_named("real time: ack on its way"), Kind.KILL),
    Cell(point_named("real time: record durable, answer to the end offsets"), Kind.ERROR),
    DURABLE_AND_KILLED,
)


@pytest.mark.slow
@pytest.mark.long
def test_some_faults(kafka: KafkaBroker, tmp_path: Path, rng: random.Random, judge: CheckpointJudge) -> None:
    """Part of the fault table; `make faults SPARK=4.3` runs all of it."""
    results = run_cells(kafka, tmp_path, SOME, rng, judge)
    print(markdown(results))
    wrong = [f"{result.cell.name}: {result.outcome}, {result.wrong}" for result in results if not result.is_good]
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.slow
def test_operations_after_a_kill(queries: Start, tmp_path: Path, judge: CheckpointJudge) -> None:
    """`verify`, `rollback` and `rescale` on a location whose last batch in real time is not committed."""
    counts = queries(["counts"])
    counts.send()
    job = counts.start(python=faulty_python(tmp_path))
    counts.await_batches(job)
    arm(tmp_path / "counts", DURABLE_AND_KILLED)
    job.wait()
    (batch,) = counts.uncommitted("counts")
    location = counts.location("counts")
    storage = LocalStorage(location)
    owner = log_records(location)[-1]["owner"]["pid"]
    eventually(lambda: not Path(f"/proc/{owner}").exists(), what="the side process ends after its driver")
    assert not verify(storage).damages
    roll_back(storage, completed_checkpoints(location)[-3])
    rescale(storage, 2 * PARTITIONS)
    counts.send()
    counts.run_micro_batches()
    assert committed_batches(location)[-1] >= batch
    counts.check(judge)
