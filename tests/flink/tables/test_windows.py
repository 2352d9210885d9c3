"""State of window operators of Flink 2.1, whose rows follow from `windows/WindowJob.java`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_ckpt.flink.tables.read import list_flink_states, read_flink_state
from tests.flink.streams.corpus import WINDOWS, StateVector

SLIDE_MS, SIZE_MS = 10_000, 20_000
Window = tuple[str, int]
"""Key and start, in milliseconds."""


class Job:
    """What the job has written.

    Args:
        vector: its checkpoint.
    """

    def __init__(self, vector: StateVector) -> None:
        self.keys: int = vector.job["keys"]
        self.rounds: int = vector.job["rounds"]
        self.watermark = (self.rounds - 2) * SLIDE_MS - 1

    def windows(self, *, closed: bool) -> Iterator[tuple[int, int, list[int]]]:
        """Number of the key, start and records of each window that is closed, or open."""
        for key in range(self.keys):
            for round_ in range(-1, self.rounds):
                records = [r * 1000 + key for r in (round_, round_ + 1) if 0 <= r < self.rounds and (key + r) % 3 != 2]
                if records and (round_ * SLIDE_MS + SIZE_MS - 1 <= self.watermark) == closed:
                    yield key, round_ * SLIDE_MS, records

    @property
    def contents(self) -> dict[Window, list[int]]:
        return {(f"key {key}", start): records for key, start, records in self.windows(closed=False)}

    @property
    def counts(self) -> dict[Window, int]:
        return {(f"key {key}", start): len(records) for key, start, records in self.windows(closed=True) if key % 2}

    @property
    def closed(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for key, start, _ in self.windows(closed=True):
            if key % 5 != 4:
                found.setdefault(f"key {key}", []).append(start)
        return found


def rows(vector: StateVector, state: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_flink_state(vector.metadata, vector.files, state=state).to_arrow().to_pylist()
    return found


def window(row: dict[str, Any]) -> Window:
    start, end = (round(row["namespace"][side].timestamp() * 1000) for side in ("start", "end"))
    assert end - start == SIZE_MS
    return row["key"], start


def lists(vector: StateVector, state: str, *, windowed: bool) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for row in rows(vector, state):
        found.setdefault(window(row) if windowed else row["key"], []).append(row["list_element"])
    return found


@pytest.mark.parametrize("vector", WINDOWS, ids=str)
def test_open_windows_have_their_records(vector: StateVector) -> None:
    contents = lists(vector, "window-contents", windowed=True)
    assert contents == Job(vector).contents
    assert {len(records) for records in contents.values()} == {1, 2}


@pytest.mark.parametrize("vector", WINDOWS, ids=str)
def test_open_windows_have_a_timer_each(vector: StateVector) -> None:
    timers = [(window(row), row["expiration_timestamp_ms"]) for row in rows(vector, "_timer_state/event_window-timers")]
    assert dict(timers) == {(key, start): start + SIZE_MS - 1 for key, start in Job(vector).contents}
    assert len(dict(timers)) == len(timers)
    assert rows(vector, "_timer_state/processing_window-timers") == []


@pytest.mark.parametrize("vector", WINDOWS, ids=str)
def test_state_of_closed_windows_stays_until_it_is_cleared(vector: StateVector) -> None:
    found = [(window(row), row["value"]) for row in rows(vector, "fired")]
    assert dict(found) == Job(vector).counts
    assert len(dict(found)) == len(found)


@pytest.mark.parametrize("vector", WINDOWS, ids=str)
def test_state_of_keys_beside_that_of_windows(vector: StateVector) -> None:
    expected = Job(vector).closed
    assert lists(vector, "closed", windowed=False) == expected
    last = rows(vector, "last")
    assert {row["key"]: row["value"]["value"] for row in last} == {key: max(each) for key, each in expected.items()}
    assert len(last) == len(expected)
    assert all(row["value"]["last_access"].year >= 2020 for row in last)


@pytest.mark.parametrize("vector", WINDOWS, ids=str)
def test_all_states_are_listed(vector: StateVector) -> None:
    assert {(state.name, state.kind) for state in list_flink_states(vector.metadata, vector.files)} == {
        ("window-contents", "LIST"),
        ("closed", "LIST"),
        ("last", "VALUE"),
        ("fired", "VALUE"),
        ("_timer_state/event_window-timers", "PRIORITY_QUEUE"),
        ("_timer_state/processing_window-timers", "PRIORITY_QUEUE"),
    }
