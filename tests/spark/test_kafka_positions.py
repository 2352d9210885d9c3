"""Positions in a real topic, as the commands show them, against the broker's own offsets."""

from __future__ import annotations

import pytest

from tests.spark.kafka_count import ROWS, KafkaCount
from tests.support.cli import run
from tests.support.kafka import KafkaBroker
from tests.support.provider import ProviderUnderTest


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("no checkpoints of spark-ckpt")


def test_positions_are_the_offsets_of_the_broker(kafka_count: KafkaCount) -> None:
    """`inspect`, `list --sources` and `diff` name topic, partition and offset, one entry per partition."""
    topic = kafka_count.topic
    kafka_count.send()
    kafka_count.send([1])
    kafka_count.drain()
    before = topic.end_offsets()
    topic.add_partitions(3)
    kafka_count.send([1, 2])
    kafka_count.drain()
    after = topic.end_offsets()
    assert after == {0: 20, 1: 80, 2: 20}

    inspected = run("inspect", kafka_count.location, "--json").json["operator_states"]
    (source,) = [operator["source"] for operator in inspected if operator["source"] is not None]
    text = f"kafka subscribe={topic.name}"
    assert source == {"name": "0", "kind": "kafka", "text": text, "positions": positions(topic.name, after)}
    lines = [line.strip("│├└─ ") for line in run("inspect", kafka_count.location).stdout.splitlines()]
    for partition, offset in after.items():
        assert f"topic {topic.name}, partition {partition}, offset {offset}" in lines

    listed = run("list", kafka_count.location, "--sources", "--json").json["checkpoints"]
    assert [checkpoint["sources"][0]["positions"] for checkpoint in listed] == [
        positions(topic.name, before),
        positions(topic.name, after),
    ]
    first, second = (checkpoint["id"] for checkpoint in listed)
    rows = [line.split() for line in run("list", kafka_count.location, "--sources").stdout.splitlines()]
    for checkpoint, offsets in ((first, before), (second, after)):
        for partition, offset in offsets.items():
            assert [str(checkpoint), "0", "kafka", topic.name, str(partition), str(offset)] in rows

    changes = run("diff", kafka_count.location, first, second, "--json").json["source_changes"]
    assert [(change["change"], change["before"], change["after"]) for change in changes] == [
        ("update", *positions(topic.name, {1: before[1]}), *positions(topic.name, {1: after[1]})),
        ("insert", None, *positions(topic.name, {2: after[2]})),
    ]
    rows = [line.split() for line in run("diff", kafka_count.location, first, second).stdout.splitlines()]
    assert ["update", "0", "kafka", topic.name, "1", str(before[1]), str(after[1])] in rows
    assert ["insert", "0", "kafka", topic.name, "2", "-", str(after[2])] in rows


def test_lag_is_that_of_the_broker(kafka_count: KafkaCount, kafka: KafkaBroker) -> None:
    """Unread records are lag; a topic made anew ends before the position, and one that is gone has no end."""
    topic, servers = kafka_count.topic, kafka.bootstrap_servers
    kafka_count.send()
    kafka_count.drain()
    assert lags(kafka_count, servers) == {0: 0, 1: 0}
    kafka_count.send([1], is_expected=False)
    assert lags(kafka_count, servers) == {0: 0, 1: ROWS}
    lines = [line.strip("│├└─ ") for line in run("inspect", kafka_count.location, "--lag", servers).stdout.splitlines()]
    assert f"topic {topic.name}, partition 1, offset 20, end offset {20 + ROWS}, lag {ROWS}" in lines
    topic.delete()
    assert lags(kafka_count, servers) == {0: None, 1: None}
    topic.create(2)
    assert lags(kafka_count, servers) == {0: -20, 1: -20}


def lags(count: KafkaCount, servers: str) -> dict[int, int | None]:
    """Lag of the newest checkpoint by partition, as `list` prints it."""
    newest = run("list", count.location, "--lag", servers, "--json").json["checkpoints"][-1]
    return {position["partition"]: position["lag"] for position in newest["sources"][0]["positions"]}


def positions(topic: str, offsets: dict[int, int]) -> list[dict[str, object]]:
    """The positions as the commands print them in JSON."""
    return [
        {"type": "kafka", "topic": topic, "partition": partition, "offset": offset}
        for partition, offset in sorted(offsets.items())
    ]
