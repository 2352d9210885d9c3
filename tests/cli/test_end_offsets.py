"""Lag of positions in Kafka, without a broker; `tests/spark/test_kafka_positions.py` asks a real one."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.cli import end_offsets
from spark_ckpt.cli.commands import inspect as inspect_command
from spark_ckpt.cli.commands import list as list_command
from spark_ckpt.cli.end_offsets import EndOffsets, topics_of
from spark_ckpt.spark_files.source_positions import FilePosition, KafkaPosition
from tests.cli.states import state_location
from tests.support.cli import run

SERVERS = "a:9092,b:9092"
ENDS = EndOffsets({("orders", 0): 30, ("orders", 1): 40, ("orders", 3): 9, ("orders", 2): 5, ("returns", 0): 0})
"""End offsets beside the positions of `tests/cli/sources.py`: a lag, none, and a partition that ends too early."""


@pytest.fixture
def location(tmp_path: Path) -> str:
    return state_location(tmp_path, with_sources=True).path


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker with these end offsets."""

    def read(servers: str, topics: Iterable[str]) -> EndOffsets:
        assert servers == SERVERS
        assert set(topics) <= {"orders", "returns"}
        return ENDS

    monkeypatch.setattr(list_command, "read_end_offsets", read)
    monkeypatch.setattr(inspect_command, "read_end_offsets", read)


def test_lag_is_the_distance_to_the_end() -> None:
    ends = EndOffsets({("t", 0): 12})
    assert ends.lag_of(KafkaPosition("t", 0, 5)) == 7
    assert ends.lag_of(KafkaPosition("t", 0, 12)) == 0
    assert ends.lag_of(KafkaPosition("t", 0, 20)) == -8, "the topic was made anew"
    assert ends.of(KafkaPosition("t", 1, 5)) is ends.lag_of(KafkaPosition("t", 1, 5)) is None


def test_topics_of_all_sources() -> None:
    kafka = SourceState("0", b"", (KafkaPosition("b", 0, 1), KafkaPosition("b", 1, 1), KafkaPosition("a", 0, 1)))
    assert topics_of([kafka, SourceState("1", b"", (FilePosition(3),)), SourceState("2", b"")]) == ["a", "b"]


@pytest.mark.usefixtures("broker")
def test_list_prints_the_lag_of_each_position(location: str) -> None:
    listed = run("list", location, "--lag", SERVERS)
    assert (listed.status, listed.stderr) == (0, "")
    lines = [line.split() for line in listed.stdout.splitlines()]
    header = lines.index(["ID", "SOURCE", "KIND", "TOPIC", "PARTITION", "OFFSET", "END", "OFFSET", "LAG"])
    rows = lines[header + 1 :]
    assert ["3", "0", "kafka", "orders", "0", "29", "30", "1"] in rows
    assert ["3", "0", "kafka", "orders", "1", "40", "40", "0"] in rows
    assert ["3", "0", "kafka", "orders", "2", "6", "5", "-1"] in rows
    assert ["3", "2", "file", "-", "-", "4", "-", "-"] in rows
    assert ["3", "7", *["-"] * 6] in rows


@pytest.mark.usefixtures("broker")
def test_list_and_inspect_have_the_lag_in_json(location: str) -> None:
    newest = run("list", location, "--lag", SERVERS, "--json").json["checkpoints"][-1]
    orders, *_ = newest["sources"]
    assert orders["positions"][0] == {
        "type": "kafka",
        "topic": "orders",
        "partition": 0,
        "offset": 29,
        "end_offset": 30,
        "lag": 1,
    }
    assert "lag" not in newest["sources"][2]["positions"][0]
    inspected = run("inspect", location, "--lag", SERVERS, "--json").json["operator_states"]
    assert [operator["source"] for operator in inspected if operator["source"] is not None] == newest["sources"][:-1]


@pytest.mark.usefixtures("broker")
def test_inspect_prints_the_lag(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("inspect", location, "--lag", SERVERS).stdout
    assert "topic orders, partition 0, offset 29, end offset 30, lag 1" in shown
    monkeypatch.setattr(inspect_command, "read_end_offsets", lambda *_: EndOffsets({}))
    shown = run("inspect", location, "--lag", SERVERS).stdout
    assert "topic orders, partition 0, offset 29, no such partition at the broker" in shown


@pytest.mark.parametrize("servers", ["broker", "broker:", ":9092", "a:9092,", "a:9092,b", "a:x"])
def test_an_address_without_a_port_is_wrong_usage(location: str, servers: str) -> None:
    listed = run("list", location, "--lag", servers)
    assert listed.status == 2
    assert "HOST:PORT" in listed.stderr


def test_a_broker_that_does_not_answer(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_offsets, "TIMEOUT_MS", 300)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening: connections are refused
        servers = f"127.0.0.1:{unused.getsockname()[1]}"
        listed = run("list", location, "--lag", servers, "--json")
    assert (listed.status, listed.stdout) == (1, "")
    assert (listed.error["error"], listed.error["servers"]) == ("KafkaUnavailableError", servers)
    assert servers in listed.error["message"]


def test_without_the_library_the_error_names_the_extra(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    listed = run("inspect", location, "--lag", SERVERS, "--json")
    assert (listed.status, listed.error["error"]) == (1, "KafkaClientNotFoundError")
    assert "pip install 'spark-ckpt[kafka]'" in listed.error["message"]
