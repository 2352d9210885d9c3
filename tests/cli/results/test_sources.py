"""Sources and their positions as JSON and as text."""

from __future__ import annotations

import pytest

from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.cli.results.sources import change_json, offset_text, position_json, position_line, source_json
from spark_ckpt.spark_files.source_positions import UnknownPosition, positions_of
from spark_ckpt.state.source_changes import PositionChange

DELTA = '{"sourceVersion":1,"reservoirId":"5b4c","reservoirVersion":3,"index":-1,"isStartingVersion":true}'
DELTA_JSON = {"type": "delta", "table_id": "5b4c", "version": 3, "index": -1, "is_initial_snapshot": True}


@pytest.mark.parametrize(
    ("offset", "line", "described"),
    [
        (
            '{"orders":{"3":17}}',
            "topic orders, partition 3, offset 17",
            {"type": "kafka", "topic": "orders", "partition": 3, "offset": 17},
        ),
        (DELTA, "table 5b4c, version 3, index -1, initial snapshot", DELTA_JSON),
        (
            DELTA.replace("true", "false"),
            "table 5b4c, version 3, index -1",
            {**DELTA_JSON, "is_initial_snapshot": False},
        ),
        ('{"logOffset":3}', "offset 3", {"type": "file", "log_offset": 3}),
        (
            '{"offset":20,"timestamp":1000}',
            "offset 20, timestamp 1000 ms",
            {"type": "rate-micro-batch", "offset": 20, "timestamp_ms": 1000},
        ),
        ('{"1":5}', "partition 1, offset 5", {"type": "partitions", "partition": 1, "offset": 5}),
        ("17", "offset 17", {"type": "number", "offset": 17}),
        ('{"at":[1]}', 'offset {"at":[1]}', {"type": "unknown", "offset": {"at": [1]}}),
        ("at\x1b 17", "offset at\\x1b 17", {"type": "unknown", "offset": "at\x1b 17"}),
        ("NaN", "offset NaN", {"type": "unknown", "offset": "NaN"}),
    ],
)
def test_a_position(offset: str, line: str, described: object) -> None:
    (position,) = positions_of(offset)
    assert position_line(position) == line
    assert position_json(position) == described


def test_a_topic_cannot_control_the_terminal() -> None:
    (position,) = positions_of('{"a\\u001b":{"0":1}}')
    assert position_line(position) == "topic a\\x1b, partition 0, offset 1"


def test_a_long_offset_is_cut_in_text_only() -> None:
    position = UnknownPosition("x" * 3000)
    assert offset_text(position) == f"{'x' * 2000}... (3,000 characters)"
    assert position_json(position) == {"type": "unknown", "offset": "x" * 3000}


def test_credentials_in_an_unknown_offset_are_hidden() -> None:
    position = UnknownPosition('{"from":"jdbc://user:hunter2@host/orders"}')
    assert offset_text(position) == '{"from":"jdbc://***@host/orders"}'
    assert position_json(position) == {"type": "unknown", "offset": {"from": "jdbc://***@host/orders"}}


def test_a_source() -> None:
    assert source_json(SourceState("0", b"", positions_of('{"logOffset":3}'))) == {
        "name": "0",
        "kind": "file",
        "positions": [{"type": "file", "log_offset": 3}],
    }
    assert source_json(SourceState("0", b"")) == {"name": "0", "kind": None, "positions": []}


def test_a_change() -> None:
    (position,) = positions_of("17")
    number = {"type": "number", "offset": 17}
    assert change_json(PositionChange("0", None, position)) == {
        "source": "0",
        "change": "insert",
        "before": None,
        "after": number,
    }
    assert change_json(PositionChange("0", position, None))["before"] == number
