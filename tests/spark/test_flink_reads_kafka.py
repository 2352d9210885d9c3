"""A `KafkaSource` of real Flink continues from the positions of a query that ran in Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spark_ckpt import export_savepoint
from tests.spark.kafka_count import KafkaCount
from tests.support.flink_restore import NEWEST, OLDEST, OPEN_PACKAGES, PROFILES
from tests.support.kafka import KafkaBroker
from tests.support.maven import build
from tests.support.provider import REPOSITORY, ProviderUnderTest

MODULE = REPOSITORY / "jvm-shim" / "flink-check" / "kafka"
MAIN_CLASS = "io.github.sparkckpt.flinkcheck.kafka.KafkaJob"
SECONDS = 600


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: the export reads our checkpoints only."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")


@pytest.mark.slow
@pytest.mark.parametrize("line", [OLDEST, pytest.param(NEWEST, marks=pytest.mark.flink)])
def test_records_after_the_last_batch(line: str, kafka_count: KafkaCount, kafka: KafkaBroker, tmp_path: Path) -> None:
    """Each of them once, of a partition that Spark has not seen too, and no earlier one."""
    topic = kafka_count.topic
    kafka_count.send()
    kafka_count.send([1])
    kafka_count.drain()
    before = topic.end_offsets()
    export_savepoint(kafka_count.location, tmp_path / "s", key="string", uid="counts", source_uids="orders", force=True)
    topic.add_partitions(3)
    kafka_count.send([0, 1, 2], count=30)
    after = topic.end_offsets()
    expected = sorted(
        (partition, offset) for partition in after for offset in range(before.get(partition, 0), after[partition])
    )
    assert len(expected) == 30
    assert run_job(line, kafka.bootstrap_servers, topic.name, tmp_path / "s", "orders", 2, len(expected)) == expected


def run_job(
    line: str, servers: str, topic: str, savepoint: Path, uid: str, parallelism: int, number: int
) -> list[tuple[int, int]]:
    """Partition and offset of the records that the job reads."""
    jars = build(MODULE, f"{line}/classpath.txt", *PROFILES[line]).read_text().strip()
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPEN_PACKAGES]
    command = ["java", "-Xmx800m", *opens, "-cp", f"{MODULE / 'target' / line / 'classes'}:{jars}", MAIN_CLASS]
    arguments = [servers, topic, str(savepoint), uid, str(parallelism), str(number)]
    run = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, run.stderr
    return sorted((int(partition), int(offset)) for partition, offset in map(str.split, run.stdout.splitlines()))
