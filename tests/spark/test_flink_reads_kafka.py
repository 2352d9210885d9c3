"""A `KafkaSource` of real Flink continues from the positions of a query that ran in Spark, and a job from its state."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from spark_ckpt import export_savepoint, read_state
from tests.spark.kafka_count import KafkaCount, running_counts_of
from tests.support.flink_restore import NEWEST, OLDEST, OPEN_PACKAGES, PROFILES
from tests.support.kafka import KafkaBroker
from tests.support.maven import build
from tests.support.provider import REPOSITORY, ProviderUnderTest
from tests.support.runner import QueryRunner

MODULE = REPOSITORY / "jvm-shim" / "flink-check" / "kafka"
JOBS = "io.github.sparkckpt.flinkcheck.kafka"
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
    found = run_job(line, "KafkaJob", kafka, topic.name, tmp_path / "s", "orders", parallelism=2, number=30)
    assert sorted((int(partition), int(offset)) for partition, offset in found) == expected


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("line", [OLDEST, pytest.param(NEWEST, marks=pytest.mark.flink)])
def test_batch_answer_over_all_records(
    line: str, kafka_count: KafkaCount, kafka: KafkaBroker, runner: QueryRunner, tmp_path: Path
) -> None:
    """Spark stops amid the topic. One Flink job counts each later record once, on top of what Spark has counted."""
    kafka_count.send(count=200)
    with kafka_count.running(maxOffsetsPerTrigger=15) as query:
        runner.await_(lambda: kafka_count.counted() >= 60, query=query)
    savepoint = tmp_path / "s"
    export_savepoint(kafka_count.location, savepoint, key="string", uid="counts", source_uids="orders", force=True)
    state = read_state(savepoint, variable="aggregate").to_arrow().to_pylist()
    by_spark = {row["key"]: tuple(row["value"].values())[1:] for row in state}
    kafka_count.topic.add_partitions(3)
    kafka_count.send(count=300)
    # A key that Spark has never counted.
    kafka_count.topic.send([(kafka_count.expected[0][0], "new", 7)])
    answer = {
        str(key): (int(str(count)), int(str(total))) for key, count, total in running_counts_of(kafka_count.expected)
    }
    remaining = len(kafka_count.expected) - sum(count for count, _ in by_spark.values())
    # On a machine that stalls, Spark may have counted all that were there.
    assert 300 <= remaining <= 440
    answer["new"] = (1, 7)
    emitted = run_job(
        line,
        "KafkaCountJob",
        *(kafka, kafka_count.topic.name, savepoint, "orders"),
        parallelism=2,
        number=remaining + 1,
        uids=("counts",),
    )
    by_flink: dict[str, list[tuple[int, int]]] = {}
    for key, count, total in emitted:
        by_flink.setdefault(key, []).append((int(count), int(total)))
    for key, figures in by_flink.items():
        before = by_spark.get(key, (0, 0))[0]
        assert [each[0] for each in figures] == [*range(before + 1, before + len(figures) + 1)]
    assert {**by_spark, **{key: figures[-1] for key, figures in by_flink.items()}} == answer


def run_job(
    line: str,
    job: str,
    broker: KafkaBroker,
    topic: str,
    savepoint: Path,
    source_uid: str,
    *,
    parallelism: int,
    number: int,
    uids: Sequence[str] = (),
) -> list[list[str]]:
    """Words of each line that a job has printed for its records."""
    jars = build(MODULE, f"{line}/classpath.txt", *PROFILES[line]).read_text().strip()
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPEN_PACKAGES]
    command = ["java", "-Xmx800m", *opens, "-cp", f"{MODULE / 'target' / line / 'classes'}:{jars}", f"{JOBS}.{job}"]
    arguments = [broker.bootstrap_servers, topic, str(savepoint), source_uid, str(parallelism), str(number), *uids]
    run = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, run.stderr
    return [line.split() for line in run.stdout.splitlines()]
