"""Vectorized Spark hash against a scalar reference; tests/spark/test_read_state.py compares with Spark's key groups."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_ref import Blocks
from spark_ckpt.reading import read_state
from spark_ckpt.spark_files.types import struct_of
from spark_ckpt.state.catalog import open_state
from spark_ckpt.state.errors import UnsupportedStateError
from spark_ckpt.state.partition_hash import PartitionKey
from spark_ckpt.state.read import StateScan
from spark_ckpt.state.views import choose_view
from tests.state import strategies
from tests.state.changes import KEY, VALUE, key, section
from tests.support import unsafe_writer
from tests.support.state_location import StateLocation, schema
from tests.support.unsafe_writer import rows_of

INTEGERS = ("boolean", "byte", "short", "integer", "date", "interval year to month")
LONGS = ("long", "timestamp", "timestamp_ntz", "interval day to second", "time(6)")


def murmur3(words: list[int], length: int, seed: int) -> int:
    """MurmurHash3 x86 32 bit over 32-bit words."""
    hash_ = seed
    for word in words:
        mixed = word * 0xCC9E2D51 & 0xFFFFFFFF
        mixed = (mixed << 15 | mixed >> 17) * 0x1B873593 & 0xFFFFFFFF
        hash_ ^= mixed
        hash_ = (hash_ << 13 | hash_ >> 19) & 0xFFFFFFFF
        hash_ = hash_ * 5 + 0xE6546B64 & 0xFFFFFFFF
    hash_ ^= length
    hash_ = (hash_ ^ hash_ >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    hash_ = (hash_ ^ hash_ >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return hash_ ^ hash_ >> 16


def of_bytes(content: bytes, seed: int) -> int:
    """Hash of bytes; each trailing byte is a signed word of its own (`hashUnsafeBytes`)."""
    whole = len(content) // 4 * 4
    words = struct.unpack(f"<{whole // 4}I", content[:whole])
    rest = (byte & 0xFFFFFFFF for byte in np.frombuffer(content[whole:], np.int8).tolist())
    return murmur3([*words, *rest], len(content), seed)


def of_value(kind: Any, value: Any, seed: int) -> int:
    """Hash of a single value (`HashExpression`)."""
    if value is None:
        return seed
    if isinstance(kind, dict):
        for field in kind["fields"]:
            seed = of_value(field["type"], value[field["name"]], seed)
        return seed
    if kind in INTEGERS:
        return murmur3([int(value) & 0xFFFFFFFF], 4, seed)
    if kind in LONGS:
        return of_bytes(struct.pack("<q", value), seed)
    if kind in ("float", "double"):
        return of_bytes(struct.pack("<f" if kind == "float" else "<d", 0.0 if value == 0 else value), seed)
    if kind == "interval":
        seed = of_bytes(struct.pack("<q", value["microseconds"]), seed)
        for name in ("days", "months"):
            seed = murmur3([value[name] & 0xFFFFFFFF], 4, seed)
        return seed
    if kind.startswith("decimal"):
        precision, scale = (int(part) for part in kind[8:-1].split(","))
        unscaled = int(Decimal(value).scaleb(scale, unsafe_writer.EXACT))
        if precision <= 18:
            return of_bytes(struct.pack("<q", unscaled), seed)
        length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return of_bytes(unscaled.to_bytes(length, "big", signed=True), seed)
    return of_bytes(value.encode() if isinstance(value, str) else value, seed)


simple = (
    st.sampled_from([kind for kind in strategies.SIMPLE if kind not in ("variant", "void")]) | strategies.decimals()
)
keys = strategies.structs(simple | strategies.structs(simple, 0, 3), 0, 4)


@settings(max_examples=60)
@given(st.data(), keys)
def test_hashes(data: st.DataObject, kind: dict[str, Any]) -> None:
    values = data.draw(st.lists(strategies.rows(kind), min_size=1, max_size=5))
    columns = data.draw(st.integers(0, len(kind["fields"])))
    expected = []
    for row in values:
        seed = 42
        for field, value in list(zip(kind["fields"], row, strict=True))[:columns]:
            seed = of_value(field["type"], value, seed)
        expected.append(seed - (seed >> 31 << 32))
    rows = rows_of([unsafe_writer.row(kind, row) for row in values])
    assert PartitionKey(struct_of(kind), columns).hashes(rows).tolist() == expected


def test_values_that_pyspark_documents() -> None:
    """Examples in the documentation of `pyspark.sql.functions.hash`."""
    kind = schema(a="string", b="string")
    rows = rows_of([unsafe_writer.row(kind, ["ABC", "DEF"])])
    assert PartitionKey(struct_of(kind), 1).hashes(rows).tolist() == [-757602832]
    assert PartitionKey(struct_of(kind), 2).hashes(rows).tolist() == [599895104]


def test_every_zero_and_every_nan_is_one() -> None:
    kind = schema(a="double")
    other_nan = unsafe_writer.row(kind, [struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]])
    rows = [unsafe_writer.row(kind, [value]) for value in (0.0, -0.0, math.nan)]
    zero, negative_zero, nan, strange = PartitionKey(struct_of(kind), 1).hashes(rows_of([*rows, other_nan])).tolist()
    assert zero == negative_zero
    assert nan == strange
    assert nan & 0xFFFFFFFF == of_value("double", math.nan, 42)


def test_arrays_are_refused() -> None:
    kind = schema(a={"type": "array", "elementType": "long"})
    with pytest.raises(UnsupportedStateError, match="the key has a list<item: int64>"):
        PartitionKey(struct_of(kind), 1).hashes(rows_of([unsafe_writer.row(kind, [[1]])]))


def test_rows_of_a_group_are_in_one_partition(tmp_path: Path) -> None:
    """Values, maps and timers are in the partition of the grouping key; the partition of Spark's indexes is unknown."""
    composite = schema(key=KEY, userKey=schema(digit="long"))
    timer = schema(key=KEY, expiryTimestampMs="long")
    timers, index = "$eventTimers_keyToTimestamp", "$ttl_count"
    families = {"count": (KEY, VALUE), "mapped": (composite, VALUE), timers: (timer, VALUE), index: (timer, VALUE)}
    variables = {"count": "ValueState", "mapped": "MapState", timers: "TimerState"}
    location = StateLocation(tmp_path, families, name="transformWithStateExec", variables=variables)
    location.commit(section({"a": 1}, "count"))
    catalog = open_state(location.path)
    keys = {
        "count": [key("a"), key("b")],
        "mapped": [unsafe_writer.row(composite, [{"user": user}, {"digit": 7}]) for user in "ab"],
        timers: [unsafe_writer.row(timer, [{"user": user}, 1000]) for user in "ab"],
    }
    expected = PartitionKey(struct_of(KEY), 1).hashes(rows_of(keys["count"])).tolist()
    assert len(set(expected)) == 2
    for name, rows in keys.items():
        assert choose_view(catalog, variable=name).partition_key.hashes(rows_of(rows)).tolist() == expected
    with pytest.raises(UnsupportedStateError, match="an internal index of Spark"):
        choose_view(catalog, variable=index).partition_key.hashes(rows_of(keys[timers]))


def test_partitions_that_share_key_groups(tmp_path: Path) -> None:
    """After a rescale to three partitions, each partition reads all blocks and keeps only its own rows."""
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)})
    everyone = {f"user-{number}": number for number in range(30)}
    location.commit(section(everyone))
    location.commit(section({"user-3": None, "user-4": 7}))
    segments = sorted(location.chains[0].entries + location.chains[1].entries, key=lambda entry: entry.version)
    chains = []
    for partition in range(3):
        filters = (PartitionFilter(3, (partition,)),)
        chains.append(Chain("0" * 32, 10, tuple(replace(segment, filters=filters) for segment in segments)))
    catalog = open_state(location.path)
    view = choose_view(catalog)
    store = replace(view.store, chains=chains, state=replace(view.store.state, rows=(10, 10, 10)))
    rows = StateScan(catalog, replace(view, store=store)).to_arrow().to_pylist()
    assert {row["key"]["user"]: row["value"]["n"] for row in rows} == without(everyone, "user-3") | {"user-4": 7}
    assert len(rows) == 29
    hashes = PartitionKey(struct_of(KEY), 1).hashes(rows_of([key(row["key"]["user"]) for row in rows]))
    assert [row["partition_id"] for row in rows] == (hashes % 3).tolist()
    assert set(hashes % 3) == {0, 1, 2}


def test_key_groups_that_lie_in_a_file_in_another_order(tmp_path: Path) -> None:
    """After two rescales, a subtask can have blocks that several other subtasks wrote to one file."""
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)})
    everyone = {f"user-{number}": number for number in range(30)}
    location.commit(section(everyone), inline=False)
    first, second = (chain.entries[0] for chain in location.chains)
    files = [location.storage.read(f"ckpt/{part.path}") for part in (second, first)]
    location.storage.write_atomic("ckpt/shared/merged", b"".join(files))
    size = len(files[0]) + len(files[1])
    merged = replace(
        first,
        blocks=Blocks(
            np.concatenate([first.key_groups, second.key_groups]),
            np.concatenate([first.offsets + len(files[0]), second.offsets]),
        ),
        path="shared/merged",
        size=size,
        file_size=size,
    )
    location.chains = [Chain("0" * 32, 30, (merged,))]
    location.complete()
    rows = read_state(location.path).to_arrow().to_pylist()
    assert {row["key"]["user"]: row["value"]["n"] for row in rows} == everyone


def without(state: dict[str, int], user: str) -> dict[str, int]:
    return {other: n for other, n in state.items() if other != user}
