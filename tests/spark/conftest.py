"""One Spark driver for all of these tests; each test has its own session, folder and checkpoint location."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.kafka_count import KafkaCount
from tests.support.changed_query import ChangedQuery
from tests.support.checkpoints import CheckpointJudge
from tests.support.counts import RunningCount
from tests.support.delta import HAS_DELTA
from tests.support.jobs import Jobs
from tests.support.kafka import KafkaBroker
from tests.support.provider import CKPT_LOCAL, ProviderUnderTest, provider_under_test
from tests.support.runner import QueryRunner
from tests.support.scala import compile_classes
from tests.support.session import open_session
from tests.support.spark_version import HAS_KAFKA

HERE = Path(__file__).parent
LAST = "test_flink_reads_all.py"
SESSION, TRANSFERS, DRIVERS, CLUSTERS = "spark session", "transfers", "drivers", "clusters"
IN_CLUSTERS = {
    "test_attempts",
    "test_connect",
    "test_evolve_in_clusters",
    "test_hdfs",
    "test_kafka_restore",
    "test_pipelines",
    "test_restore",
    "test_yarn",
}
"""Modules whose drivers run beside servers or on a cluster. They take about as long as the other drivers."""
OF_TRANSFERS = (
    "test_evolve",
    "test_export",
    "test_flink_goes_on",
    "test_flink_reads_kafka",
    "test_from_flink",
    "test_import",
    "test_lazy_restore",
    "test_transfer",
    "test_write_state",
)
"""Prefixes of modules about state that comes from elsewhere, goes elsewhere or changes, and about lazy restores. They
take half the time of all tests on a shared session."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist collects the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the check by real Flink last, because it reads what all other tests have written.

    With pytest-xdist, the tests form four groups: those of `OF_TRANSFERS`, others on the shared Spark session, those in
    clusters, and those with drivers of their own. Each process knows the checkpoint locations of its groups only.
    """
    items.sort(key=lambda item: item.path.name == LAST)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("spark")
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    if isinstance(item, pytest.Function) and item.path.name == LAST:
        return str(item.callspec.params["group"])
    if item.path.stem in IN_CLUSTERS:
        return CLUSTERS
    if item.path.stem.startswith(OF_TRANSFERS):
        return TRANSFERS
    return SESSION if "shared_spark" in getattr(item, "fixturenames", ()) else DRIVERS


@pytest.fixture(scope="session")
def provider() -> ProviderUnderTest:
    """The provider under test."""
    return provider_under_test()


@pytest.fixture(scope="session")
def judge(provider: ProviderUnderTest, tmp_path_factory: pytest.TempPathFactory) -> CheckpointJudge:
    """Judge of every checkpoint location of this run."""
    return CheckpointJudge(provider, tmp_path_factory.mktemp("metadata"))


@pytest.fixture(scope="session")
def scala_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory on the class path of the shared session, which finds classes compiled later."""
    return tmp_path_factory.mktemp("classes")


@pytest.fixture(scope="session")
def transfer_queries(scala_classes: Path) -> None:
    """Compiles the Scala queries of `tests/migrate/queries.py`."""
    compile_classes(HERE / "scala" / "TransferQueries.scala", scala_classes)


@pytest.fixture(scope="session")
def shared_spark(
    provider: ProviderUnderTest, tmp_path_factory: pytest.TempPathFactory, scala_classes: Path
) -> Iterator[SparkSession]:
    """The only Spark driver of this process."""
    folder = tmp_path_factory.mktemp("spark")
    conf = {"spark.driver.extraClassPath": str(scala_classes)}
    spark = open_session(provider, folder, conf=conf, delta=HAS_DELTA, kafka=HAS_KAFKA)
    yield spark
    spark.stop()


@pytest.fixture
def spark(shared_spark: SparkSession, provider: ProviderUnderTest) -> Iterator[SparkSession]:
    """A session with its own settings; its queries are stopped at the end."""
    session = shared_spark.newSession()
    for key, value in provider.conf().items():
        session.conf.set(key, value)
    yield session
    for query in session.streams.active:
        query.stop()


@pytest.fixture
def runner(spark: SparkSession, tmp_path: Path, judge: CheckpointJudge) -> QueryRunner:
    """Runner of this test's query."""
    return QueryRunner(spark, tmp_path, judge)


@pytest.fixture
def count(spark: SparkSession, runner: QueryRunner, tmp_path: Path, rng: random.Random) -> RunningCount:
    """A running count in this test's folder, not yet started."""
    return RunningCount(spark, runner, tmp_path, rng)


@pytest.fixture
def kafka_count(
    kafka: KafkaBroker, spark: SparkSession, runner: QueryRunner, tmp_path: Path, rng: random.Random
) -> KafkaCount:
    """A running count over a topic of this test, not yet started."""
    return KafkaCount(spark, runner, kafka, tmp_path, rng)


@pytest.fixture
def checkpoint_ids(spark: SparkSession, provider: ProviderUnderTest) -> None:
    """Enables Spark's unique ids of state-store checkpoints."""
    if provider.name == "hdfs":
        pytest.skip("Spark's HDFS-backed provider has no state-store checkpoint ids")
    spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2")


@pytest.fixture
def small_budget(spark: SparkSession, provider: ProviderUnderTest) -> None:
    """Leaves no memory to state: all that can move is on the local disk at the end of each batch. Compresses new
    state."""
    if provider.is_ours:
        for key, value in CKPT_LOCAL.settings.items():
            spark.conf.set(key, value)


@pytest.fixture(params=["ids-off", "ids-on"])
def checkpoint_format(request: pytest.FixtureRequest) -> None:
    """Both formats of Spark's state-store checkpoints: without and with unique ids of attempts.

    The second variant also has a small budget and compressed state, since every query has both.
    """
    if request.param == "ids-on":
        request.getfixturevalue("checkpoint_ids")
        request.getfixturevalue("small_budget")


@pytest.fixture
def jobs(tmp_path: Path, provider: ProviderUnderTest, judge: CheckpointJudge) -> Iterator[Jobs]:
    """Drivers in this test's folder; those still running at the end are killed."""
    jobs = Jobs(tmp_path, provider, judge)
    yield jobs
    for job in jobs.started:
        job.kill()


@pytest.fixture
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips a test if another provider is under test."""
    if not provider.is_ours:
        pytest.skip("only our provider has state that evolves and can be written")


@pytest.fixture
def changed(spark: SparkSession, tmp_path: Path, judge: CheckpointJudge) -> Iterator[ChangedQuery]:
    """A query over files 0 to 2 in this test's folder, not yet started."""
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    yield ChangedQuery(spark, tmp_path, judge)
    spark.conf.unset("spark.sql.shuffle.partitions")
