"""Dates and timestamps of all years as text."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt.cli.results.state import rows_json
from spark_ckpt.cli.results.times import number_of, time_text

KINDS = [
    pa.timestamp("us", "UTC"),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    pa.date32(),
    pa.date64(),
]
YEAR_US = 31_556_952_000_000
LAST_US = 2**63 - 1
"""Last microsecond of Spark's timestamps."""


def of(kind: pa.DataType, days: int) -> int:
    per_day = {"date32[day]": 1, "date64[ms]": 86_400_000}.get(str(kind))
    return days * (per_day or 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_years_that_arrow_prints_are_printed_alike(kind: pa.DataType, rng: random.Random) -> None:
    most = 90_000 if getattr(kind, "unit", "") == "ns" else 2_900_000
    numbers = [of(kind, rng.randrange(-most // 4, most)) for _ in range(500)]
    if pa.types.is_timestamp(kind):
        numbers = [number + rng.randrange(of(kind, 1)) for number in numbers]
    array = pa.array(numbers, number_of(kind)).view(kind)
    assert [time_text(number, kind) for number in numbers] == array.cast(pa.string()).to_pylist()


def shown(values: list[Any], kind: pa.DataType) -> list[Any]:
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["x"])
    return [row["x"] for row in rows_json(batch)]


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (LAST_US, pa.timestamp("us", "UTC"), "294247-01-10 04:00:54.775807Z"),
        (-LAST_US, pa.timestamp("us"), "-290308-12-21 19:59:05.224193"),
        (2**31 - 1, pa.date32(), "5881580-07-11"),
        ((32_768 - 1970) * YEAR_US, pa.timestamp("us"), "32768-01-01 12:21:36.000000"),
    ],
)
def test_years_beyond_those(number: int, kind: pa.DataType, text: str) -> None:
    """Alone, and in structs, lists and maps, beside a time that Arrow prints."""
    far = pa.array([number, None], number_of(kind)).view(kind)
    near = pa.array([0, None], number_of(kind)).view(kind)
    [day, *_] = near.cast(pa.string()).to_pylist()
    struct = pa.StructArray.from_arrays([far, near], ["far", "near"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2], pa.int32()), far)
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 1], pa.int32()), near.slice(0, 1), far.slice(0, 1))
    batch = pa.RecordBatch.from_arrays([far, struct, lists, maps], ["x", "struct", "list", "map"])
    first, second = rows_json(batch)
    assert first["x"] == text
    assert first["struct"] == {"far": first["x"], "near": day}
    assert first["list"] == [first["x"], None]
    assert first["map"] == [[day, first["x"]]]
    assert (second["x"], second["struct"]) == (None, {"far": None, "near": None})


def test_other_values_beside_a_far_time() -> None:
    """Decimals, durations and bytes are shown as always."""
    near, far = (
        pa.RecordBatch.from_pylist(
            [{"at": at, "bytes": b"x", "n": 3}],
            pa.schema([("at", pa.timestamp("us")), ("bytes", pa.binary()), ("n", pa.int64())]),
        )
        for at in (datetime(2024, 1, 1, tzinfo=timezone.utc).replace(tzinfo=None), None)
    )
    (of_near,), (of_far,) = rows_json(near), rows_json(far)
    assert {**of_near, "at": None} == of_far
