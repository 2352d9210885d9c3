"""Rows decoded column by column, beside those decoded one by one."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.state import rows_json
from spark_ckpt.flink.streams import Entry, StateMetaInfoSnapshot, heap_snapshot
from spark_ckpt.flink.streams.assignment import key_group_of
from spark_ckpt.flink.streams.headers import BackendStateType, KeyedHeader
from spark_ckpt.flink.streams.heap_snapshot import (
    Block,
    read_block_entries,
    read_heap_blocks,
    read_heap_entries,
)
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    TimerSerializer,
    TtlSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.logical_types import MAX_LENGTH, REGULAR, LogicalType
from spark_ckpt.flink.streams.types.primitives import (
    BOOLEAN,
    BYTE,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SHORT,
    TIME_WINDOW,
    VOID_NAMESPACE,
)
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.flink.streams.values import RowData, Timer, Timestamp, TimeWindow, TtlValue
from spark_ckpt.flink.tables import read
from spark_ckpt.flink.tables.columns import StateColumns
from spark_ckpt.flink.tables.read import list_flink_states, read_flink_state
from spark_ckpt.flink.tables.rocksdb import entries_of_rows
from spark_ckpt.flink.tables.vectors import BlockReader, VectorReader
from spark_ckpt.flink.types.hashes import key_groups_of
from spark_ckpt.metadata.data_output import DataOutput
from tests.flink.streams.corpus import BACKENDS, JOBS, ROWS, WINDOWS, StateVector

Row = tuple[bytes, bytes]
TUPLE = TupleSerializer.of(STRING, LONG)
SQL = RowDataSerializer(
    (
        *map(LogicalType, ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DATE")),
        LogicalType("TIME_WITHOUT_TIME_ZONE", (3,)),
        LogicalType("VARCHAR", (MAX_LENGTH,)),
        LogicalType("VARBINARY", (MAX_LENGTH,)),
        LogicalType("DECIMAL", (18, 2)),
        *(LogicalType("TIMESTAMP_WITHOUT_TIME_ZONE", (digits,), timestamp_kind=REGULAR) for digits in (3, 6)),
        LogicalType("TIMESTAMP_WITH_LOCAL_TIME_ZONE", (6,), timestamp_kind=REGULAR),
        LogicalType("INTERVAL_YEAR_MONTH", (2,), resolution="YEAR_TO_MONTH"),
        LogicalType("INTERVAL_DAY_TIME", (2, 6), resolution="DAY_TO_SECOND"),
    )
)
READABLE = [
    vector
    for vector in (*JOBS, *ROWS, *WINDOWS, *BACKENDS)
    if list(vector.keyed()) and "changelog" not in str(vector) and not str(vector).startswith("f20")
]


def state(kind: str, value: Serializer, namespace: Serializer = VOID_NAMESPACE) -> StateMetaInfoSnapshot:
    serializers = {"NAMESPACE_SERIALIZER": namespace, "VALUE_SERIALIZER": value}
    return StateMetaInfoSnapshot("state", BackendStateType.KEY_VALUE, {"KEYED_STATE_TYPE": kind}, serializers)


def timers(key: Serializer, namespace: Serializer = VOID_NAMESPACE) -> StateMetaInfoSnapshot:
    serializers = {"VALUE_SERIALIZER": TimerSerializer((key, namespace))}
    return StateMetaInfoSnapshot("timers", BackendStateType.PRIORITY_QUEUE, {}, serializers)


def written(*parts: tuple[Serializer, Any]) -> bytes:
    out = DataOutput()
    for serializer, value in parts:
        serializer.write(value, out, "value")
    return out.getvalue()


def prefix(serializer: Serializer, key: Any, max_parallelism: int) -> bytes:
    code = serializer.hash_code(key)
    assert code is not None
    return key_group_of(code, max_parallelism).to_bytes(1 if max_parallelism <= 128 else 2, "big")


class Values:
    """Random values of serializers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def count(self) -> int:
        return self._random.randint(1, 5)

    def of(self, serializer: Serializer) -> Any:
        choose = self._random
        bits = {BYTE: 8, SHORT: 16, INT: 32, LONG: 64}
        if serializer in bits:
            half = 1 << bits[serializer] - 1
            return choose.choice([-half, half - 1, -1, 0, choose.randrange(-half, half)])
        if serializer == BOOLEAN:
            return choose.random() < 0.5
        if serializer == FLOAT:
            return struct.unpack(">f", struct.pack(">f", choose.uniform(-10, 10)))[0]
        if serializer == DOUBLE:
            return choose.choice([choose.uniform(-10, 10), float("inf"), -0.0])
        if serializer == STRING:
            return "".join(choose.choices("abc~ \0", k=choose.choice([0, 1, 5, 126])))
        if serializer == BYTES:
            return choose.randbytes(choose.randrange(9))
        if serializer == TIME_WINDOW:
            return TimeWindow(choose.randrange(10**12), choose.randrange(10**12))
        if isinstance(serializer, TupleSerializer):
            return tuple(map(self.of, serializer.parts))
        if isinstance(serializer, TtlSerializer):
            return TtlValue(choose.randrange(10**12), self.of(serializer.parts[1]))
        if isinstance(serializer, RowDataSerializer):
            fields = tuple([None if choose.random() < 0.2 else self._field(each) for each in serializer.types])
            return RowData(choose.randrange(4), fields)
        assert serializer == VOID_NAMESPACE
        return None

    def _field(self, kind: LogicalType) -> Any:
        choose = self._random
        if kind.root == "VARCHAR":
            return "".join(choose.choices("aä€😀", k=choose.choice([0, 1, 2, 7, 20])))
        if kind.root == "VARBINARY":
            return choose.randbytes(choose.choice([0, 7, 8, 30]))
        if kind.root == "DECIMAL":
            return Decimal(choose.randrange(-(10**18) + 1, 10**18)).scaleb(-2)
        if kind.root.startswith("TIMESTAMP"):
            nanos = 0 if kind.parameters[0] == 3 else choose.randrange(1000) * 1000
            return Timestamp(choose.randrange(-(10**13), 10**13), nanos)
        if kind.root == "DATE":
            return choose.randrange(-10_000, 100_000)
        if kind.root == "TIME_WITHOUT_TIME_ZONE":
            return choose.randrange(86_400_000)
        if kind.root.startswith("INTERVAL"):
            return self.of(INT if kind.root == "INTERVAL_YEAR_MONTH" else LONG)
        plain = {"BOOLEAN": BOOLEAN, "TINYINT": BYTE, "SMALLINT": SHORT, "INTEGER": INT, "BIGINT": LONG, "FLOAT": FLOAT}
        return self.of(plain.get(kind.root, DOUBLE))


def rows_of(key: Serializer, meta: StateMetaInfoSnapshot, max_parallelism: int, values: Values) -> list[Row]:
    found = []
    for _ in range(50):
        one = values.of(key)
        head = prefix(key, one, max_parallelism)
        if meta.kind is BackendStateType.PRIORITY_QUEUE:
            _, namespace = meta.value_serializer.nested
            timer = Timer(values.of(LONG), one, values.of(namespace))
            found.append((head + written((meta.value_serializer, timer)), b""))
            continue
        parts = [(key, one), (meta.namespace_serializer, values.of(meta.namespace_serializer))]
        value = meta.value_serializer
        if isinstance(value, ListSerializer):
            (element,) = value.parts
            elements = [written((element, values.of(element))) for _ in range(values.count())]
            found.append((head + written(*parts), b",".join(elements)))
        elif isinstance(value, MapSerializer):
            of_key, of_value = value.parts
            parts.append((of_key, values.of(of_key)))
            found.append((head + written(*parts), b"\0" + written((of_value, values.of(of_value)))))
        else:
            found.append((head + written(*parts), written((value, values.of(value)))))
    return found


def one_by_one(header: KeyedHeader, rows: list[Row], max_parallelism: int) -> list[JsonObject]:
    columns = StateColumns.of(header, 0, is_heap=False)
    entries: list[tuple[int, Entry]] = list(entries_of_rows(rows, header, 0, max_parallelism, "rows"))
    each = [(row, group) for group, entry in entries for row in columns.rows(entry)]
    batch = columns.batch([row for row, _ in each], [group for _, group in each], 0)
    return list(rows_json(batch))


def in_columns(
    header: KeyedHeader, rows: list[Row], max_parallelism: int, *, is_damaged: bool = False
) -> list[JsonObject] | None:
    reader = VectorReader.of(header, 0, max_parallelism)
    assert reader is not None
    if (found := reader.read(rows)) is None:
        return None
    batch = StateColumns.of(header, 0, is_heap=False).of_arrays(*found, 0)
    assert batch.schema == StateColumns.of(header, 0, is_heap=False).schema
    # A damaged time of day is none of Arrow's.
    batch.validate(full=not is_damaged)
    return list(rows_json(batch))


PLAIN = [
    *((key, state("VALUE", value)) for key in (BYTE, SHORT, INT, LONG, STRING, TUPLE) for value in (LONG, STRING)),
    *((LONG, state("VALUE", value)) for value in (BOOLEAN, BYTE, SHORT, INT, FLOAT, DOUBLE, BYTES, TIME_WINDOW)),
    *((LONG, state("VALUE", value)) for value in (TUPLE, TtlSerializer((LONG, TUPLE)))),
    *((key, state("REDUCING", LONG, TIME_WINDOW)) for key in (LONG, STRING)),
    *((STRING, state("MAP", MapSerializer((of_key, LONG)))) for of_key in (STRING, LONG, TUPLE)),
    (LONG, state("MAP", MapSerializer((STRING, STRING)), TIME_WINDOW)),
    *((key, state("LIST", ListSerializer((of,)))) for key in (LONG, STRING) for of in (LONG, STRING, TUPLE)),
    (LONG, state("LIST", ListSerializer((STRING,)), TIME_WINDOW)),
    (SQL, state("VALUE", SQL)),
    (SQL, state("MAP", MapSerializer((SQL, LONG)))),
    (LONG, state("LIST", ListSerializer((SQL,)))),
    (SQL, timers(SQL)),
    *((key, timers(key, namespace)) for key in (LONG, STRING) for namespace in (VOID_NAMESPACE, TIME_WINDOW)),
]


@pytest.mark.parametrize("max_parallelism", [1, 128, 1000])
@pytest.mark.parametrize(
    ("key", "meta"), PLAIN, ids=[f"{key}-{meta.value_serializer}-{n}" for n, (key, meta) in enumerate(PLAIN)]
)
def test_columns_equal_rows(key: Serializer, meta: StateMetaInfoSnapshot, max_parallelism: int, seed: int) -> None:
    header = KeyedHeader(False, key, (meta,))
    values = Values(seed)
    # Row by row, rows of a key group are neighbours.
    rows = sorted(rows_of(key, meta, max_parallelism, values), key=lambda row: row[0])
    found = in_columns(header, rows, max_parallelism)
    assert found is not None
    assert found == one_by_one(header, rows, max_parallelism)


@pytest.mark.parametrize("value", ["ä", None, "x" * 127], ids=["beyond ASCII", "null", "long"])
def test_what_is_not_plain_is_left_to_the_other_reader(value: str | None) -> None:
    header = KeyedHeader(False, LONG, (state("VALUE", STRING),))
    plain = (prefix(LONG, 7, 128) + written((LONG, 7), (VOID_NAMESPACE, None)), written((STRING, "a")))
    assert in_columns(header, [plain], 128) is not None
    assert in_columns(header, [plain, (plain[0], written((STRING, value)))], 128) is None


def test_null_values_of_maps_are_left_to_the_other_reader() -> None:
    header = KeyedHeader(False, LONG, (state("MAP", MapSerializer((LONG, LONG))),))
    key = prefix(LONG, 7, 128) + written((LONG, 7), (VOID_NAMESPACE, None), (LONG, 1))
    assert in_columns(header, [(key, b"\0" + written((LONG, 1)))], 128) is not None
    assert in_columns(header, [(key, b"\1")], 128) is None


def test_damaged_rows_are_left_to_the_other_reader(seed: int) -> None:
    """It names the error. The key group is a checksum of the key."""
    key, meta = STRING, state("MAP", MapSerializer((STRING, LONG)))
    header = KeyedHeader(False, key, (meta,))
    rows = rows_of(key, meta, 128, Values(seed))
    for row in rows[:4]:
        for length in range(len(row[0])):
            assert in_columns(header, [*rows, (row[0][:length], row[1])], 128) is None
        assert in_columns(header, [*rows, (row[0] + b"\0", row[1])], 128) is None
        for length in range(len(row[1])):
            assert in_columns(header, [*rows, (row[0], row[1][:length])], 128) is None
        assert in_columns(header, [*rows, (bytes([row[0][0] ^ 1]) + row[0][1:], row[1])], 128) is None


@pytest.mark.parametrize(
    ("key", "meta"),
    [
        (DOUBLE, state("VALUE", MapSerializer((LONG, LONG)))),
        (LONG, state("VALUE", ListSerializer((LONG,)))),
        (LONG, state("LIST", ListSerializer((ListSerializer((LONG,)),)))),
        (LONG, state("VALUE", RowDataSerializer((LogicalType("ARRAY", children=(LogicalType("INTEGER"),)),)))),
        (LONG, state("VALUE", RowDataSerializer((LogicalType("DECIMAL", (30, 2)),)))),
        (STRING, state("VALUE", LONG, STRING)),
        (LONG, timers(ListSerializer((LONG,)))),
    ],
)
def test_states_without_a_reader(key: Serializer, meta: StateMetaInfoSnapshot) -> None:
    assert VectorReader.of(KeyedHeader(False, key, (meta,)), 0, 128) is None


def test_keys_without_a_hash_are_left_to_the_other_reader() -> None:
    """Their key group cannot be checked at once."""
    row = (prefix(DOUBLE, 1.5, 128) + written((DOUBLE, 1.5), (VOID_NAMESPACE, None)), written((LONG, 1)))
    assert in_columns(KeyedHeader(False, DOUBLE, (state("VALUE", LONG),)), [row], 128) is None


def test_lists_with_many_elements_are_left_to_the_other_reader() -> None:
    header = KeyedHeader(False, LONG, (state("LIST", ListSerializer((LONG,))),))
    key = prefix(LONG, 7, 128) + written((LONG, 7), (VOID_NAMESPACE, None))
    for count, is_plain in ((1, True), (256, True), (258, False)):
        found = in_columns(header, [(key, b",".join([written((LONG, n)) for n in range(count)]))], 128)
        assert (found is not None) == is_plain
        assert found is None or [row["list_element"] for row in found] == list(range(count))


@pytest.mark.parametrize("damage", ["2c", "00", "2c00"])
def test_damaged_lists_are_left_to_the_other_reader(damage: str) -> None:
    header = KeyedHeader(False, LONG, (state("LIST", ListSerializer((LONG,))),))
    key = prefix(LONG, 7, 128) + written((LONG, 7), (VOID_NAMESPACE, None))
    assert in_columns(header, [(key, written((LONG, 1)) + bytes.fromhex(damage))], 128) is None
    assert in_columns(header, [(key, b"")], 128) is None


def test_damaged_rows_of_sql_are_left_to_the_other_reader(seed: int) -> None:
    """Damage is refused or another row, as by the other reader. Only one in 128 damaged keys has its key group."""
    meta = state("VALUE", SQL)
    header = KeyedHeader(False, SQL, (meta,))
    rows = rows_of(SQL, meta, 128, Values(seed))[:3]
    for row in rows[:1]:
        for length in range(0, len(row[0]), 3):
            assert in_columns(header, [*rows, (row[0][:length], row[1])], 128) is None
        changed = [(other, row[1]) for other in flipped(row[0])] + [(row[0], other) for other in flipped(row[1])]
        found = [in_columns(header, [each], 128, is_damaged=True) for each in changed]
        assert sum(rows is not None for rows in found[: len(row[0])]) < len(row[0]) / 8
        for each, rows_of_it in zip(changed, found, strict=True):
            assert rows_of_it is None or rows_of_it == one_by_one(header, [each], 128)


def flipped(content: bytes) -> list[bytes]:
    """The content with each byte changed in one bit."""
    return [content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :] for at in range(len(content))]


HEAP = [
    *((key, state("VALUE", value)) for key in (LONG, STRING, TUPLE) for value in (LONG, STRING, TUPLE, BOOLEAN)),
    (LONG, state("VALUE", TtlSerializer((LONG, STRING)), TIME_WINDOW)),
    *((key, timers(key, TIME_WINDOW)) for key in (LONG, STRING)),
]


def heap_entry(key: Serializer, meta: StateMetaInfoSnapshot, one: Any, value: Any, values: Values) -> bytes:
    if meta.kind is BackendStateType.PRIORITY_QUEUE:
        timer = Timer(values.of(LONG), one, values.of(meta.value_serializer.nested[1]))
        return written((meta.value_serializer, timer))
    namespace = meta.namespace_serializer
    return written((namespace, values.of(namespace)), (key, one), (meta.value_serializer, value))


def keys_of(group: int, key: Serializer, values: Values) -> list[tuple[Any, str]]:
    """Some keys of a key group of 4, with texts."""
    found = [values.of(key) for _ in range(20)]
    return [(one, text) for one, text in zip(found, ["a", "ä"] * 10, strict=True) if key_group(key, one) == group]


def key_group(key: Serializer, one: Any) -> int:
    code = key.hash_code(one)
    assert code is not None
    return key_group_of(code, 4)


@pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "not plain"])
@pytest.mark.parametrize(("key", "meta"), HEAP, ids=[f"{key}-{meta.value_serializer}" for key, meta in HEAP])
def test_blocks_equal_entries(
    key: Serializer, meta: StateMetaInfoSnapshot, is_plain: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two states in each key group, the second of which is read; blocks end within entries."""
    monkeypatch.setattr(heap_snapshot, "_BLOCK_BYTES", 300)
    values = Values(seed)
    header = KeyedHeader(False, key, (state("VALUE", STRING), meta))
    of_groups: dict[int, list[bytes]] = {}
    for _ in range(60):
        one = values.of(key)
        value = None if meta.kind is BackendStateType.PRIORITY_QUEUE else values.of(meta.value_serializer)
        if not is_plain and meta.value_serializer == STRING:
            value = random.Random(seed + len(of_groups)).choice([value, "ä" * 3, None, "x" * 127, "x" * 1000])
        of_groups.setdefault(key_group(key, one), []).append(heap_entry(key, meta, one, value, values))
    blocks: list[Block] = []
    entries: list[tuple[int, Entry]] = []
    for group, each in of_groups.items():
        others = [heap_entry(key, header.states[0], one, text, values) for one, text in keys_of(group, key, values)]
        content = struct.pack(">ihi", group, 0, len(others)) + b"".join(others)
        content += struct.pack(">hi", 1, len(each)) + b"".join(each)
        arguments = (header, group)
        blocks += read_heap_blocks(StreamInput(iter([content]), "heap", 0, len(content)), *arguments, 1, 4)
        found = read_heap_entries(
            StreamInput(iter([content]), "heap", 0, len(content)), *arguments, 4, open_end=False, only=1
        )
        entries += [(group, entry) for entry in found]
    reader = BlockReader.of(header, 1, 4)
    assert reader is not None
    columns = StateColumns.of(header, 1, is_heap=True)
    rows = [row for _, entry in entries for row in columns.rows(entry)]
    expected = list(rows_json(columns.batch(rows, [group for group, _ in entries], 0)))
    assert len(expected) == sum(len(block.ends) for block in blocks) == 60
    separate = [
        (block.key_group, entry) for block in blocks for entry in read_block_entries(block, header, 1, 4, "heap")
    ]
    assert separate == entries
    if (read := reader.read(blocks)) is not None:
        assert list(rows_json(columns.of_arrays(*read, 0))) == expected
    assert (read is not None) or (not is_plain and meta.value_serializer == STRING)


def test_damaged_blocks_are_left_to_the_other_reader() -> None:
    header = KeyedHeader(False, LONG, (state("VALUE", LONG),))
    reader = BlockReader.of(header, 0, 128)
    assert reader is not None
    group = key_group_of(LONG.hash_code(7) or 0, 128)
    content = written((VOID_NAMESPACE, None), (LONG, 7), (LONG, 49))
    assert reader.read([Block(group, content, [len(content)])]) is not None
    assert reader.read([Block(group + 1, content, [len(content)])]) is None
    assert reader.read([Block(group, b"\1" + content[1:], [len(content)])]) is None


def test_key_groups_are_those_of_flink() -> None:
    codes = [0, 1, 0xFFFFFFFF, 0x80000000, *random.Random(1).choices(range(1 << 32), k=1000)]
    for max_parallelism in (1, 128, 1000, 32768):
        found = key_groups_of(np.array(codes, np.uint32), max_parallelism).tolist()
        assert found == [key_group_of(code, max_parallelism) for code in codes]


@pytest.mark.parametrize("vector", READABLE, ids=str)
def test_tables_of_flink_are_the_same(vector: StateVector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "BATCH_ROWS", 11)
    tables = []
    for is_plain in (True, False):
        if not is_plain:
            for reader in (VectorReader, BlockReader):
                monkeypatch.setattr(reader, "of", lambda *_: None)
        tables.append(
            {
                (each.operator_id, each.name): read_flink_state(
                    vector.metadata, vector.files, state=each.name, operator=each.operator_id.hex()
                ).to_arrow()
                for each in list_flink_states(vector.metadata, vector.files)
            }
        )
    assert tables[0].keys() == tables[1].keys()
    assert all(tables[0][name].to_pylist() == tables[1][name].to_pylist() for name in tables[0])
