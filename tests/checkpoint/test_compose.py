from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.checkpoint.batch import Source, SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable, files_of
from spark_ckpt.checkpoint.compose import decompose, offset_elements, operator_id_of, spark_batch_of, state_files_of
from spark_ckpt.checkpoint.encode import encode_metadata
from spark_ckpt.checkpoint.packing import packed
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.errors import CheckpointError, UnsupportedFormatError
from spark_ckpt.features import Feature
from spark_ckpt.format.key_groups import factors, key_group_span
from spark_ckpt.format.keys import PartitionFilter, StoreKey
from spark_ckpt.format.segment_flags import COMPRESSED, FLAGS, ORDERED
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    CheckpointMetadata,
    KeyGroupsStateHandle,
    MasterState,
    OperatorStreamStateHandle,
    RelativeFileStateHandle,
    dumps,
    loads,
)
from spark_ckpt.storage.errors import PathEscapeError
from tests.support.metadata_model import compose
from tests.support.segments import segment_ref

FACTORS = tuple(factors(4, 64))
VERSION = 30
FILTERS = (PartitionFilter(3, (1,)), PartitionFilter(7, (0, 2, 6)))


@st.composite
def entries(draw: st.DrawFn, partition: int, parallelism: int, is_base: bool, version: int) -> SegmentRef:
    span = key_group_span(partition, parallelism, FACTORS)
    groups = sorted(draw(st.sets(st.integers(span.start, span.end), min_size=1)))
    starts = sorted(draw(st.sets(st.integers(0, 10_000), min_size=len(groups), max_size=len(groups))))
    path = draw(st.none() | st.just(f"shared/deltas-{uuid.UUID(int=version).hex}"))
    data = draw(st.binary(max_size=30)) if path is None else b""
    size = len(data) if path is None else draw(st.integers(0, 2**40))
    return segment_ref(
        0 if is_base else draw(st.integers(1, version)),
        version,
        np.array(groups, np.uint32),
        np.array(starts, np.int64),
        size,
        path,
        size + 5 if path else size,
        data,
        draw(st.sampled_from([(), FILTERS[:1], FILTERS])),
        draw(st.integers(0, sum(flag.bit for flag in FLAGS))),
    )


@st.composite
def tables(draw: st.DrawFn) -> ChainTable:
    table: ChainTable = {}
    for store, parallelism in ((StoreKey(0, "left"), 4), (StoreKey(0, "right"), 4), (StoreKey(3, "default"), 1)):
        chains: list[Chain] = []
        for partition in range(parallelism):
            versions = sorted(draw(st.sets(st.integers(1, VERSION), max_size=4)))
            has_base = draw(st.booleans())
            chain = tuple(
                draw(entries(partition, parallelism, has_base and i == 0, version))
                for i, version in enumerate(versions)
            )
            if chains and chains[-1].entries and draw(st.booleans()):
                share = replace(draw(st.sampled_from(chains[-1].entries)), filters=FILTERS[:1])
                chain = (replace(share, size=draw(st.integers(0, 2**40))) if share.path else share, *chain)
            chains.append(Chain(str(draw(st.uuids())), draw(st.integers(0, 2**40)), chain))
        table[store] = chains
    return table


def batch_of(table: ChainTable) -> SparkBatch:
    return SparkBatch(
        batch_id=VERSION - 1,
        version=VERSION,
        query_id="11111111-2222-3333-4444-555555555555",
        run_id="run",
        query_name="näme",
        spark_version="4.2.0",
        checkpoint_format=2,
        max_parallelism=64,
        key_group_factors=FACTORS,
        sources=("kafka", "files"),
        stores=tuple(
            StoreState(
                key.operator_id,
                key.store,
                "op",
                2 if key.operator_id else None,
                tuple(chain.rows for chain in chains),
                tuple(chain.state_id for chain in chains),
                SegmentTable.of(chains),
            )
            for key, chains in table.items()
        ),
    )


SOURCES = (Source("kafka", '{"t":{"0":5,"1":7}}'), Source("none", None), Source("files", '{"logOffset":3}'))


@settings(max_examples=60)
@given(tables(), st.none() | st.binary(max_size=50))
def test_the_fast_encoding_is_that_of_the_model(table: ChainTable, offsets: bytes | None) -> None:
    batch = batch_of(table)
    expected = dumps(compose(17, batch, table, SOURCES, offsets), version=3)
    for _ in range(2):  # the second time from cached bytes
        assert encode_metadata(17, batch, table, SOURCES, offsets) == expected


@settings(max_examples=60)
@given(tables())
def test_chains_are_read_back_as_they_were_written(table: ChainTable) -> None:
    metadata = loads(encode_metadata(17, batch_of(table), table, SOURCES, b"v1"))
    batch, again = decompose(metadata)
    assert batch.encode() == batch_of(table).encode()
    assert state_files_of(metadata) == files_of(table)
    assert list(again) == list(table)
    for key, chains in table.items():
        for expected, found in zip(chains, again[key], strict=True):
            assert (found.state_id, found.rows) == (expected.state_id, expected.rows)
            assert [describe(entry) for entry in found.entries] == [describe(entry) for entry in expected.entries]


def describe(entry: SegmentRef) -> tuple[object, ...]:
    return (
        entry.first_version,
        entry.version,
        entry.key_groups.tolist(),
        entry.offsets.tolist(),
        entry.size,
        entry.path,
        entry.file_size,
        entry.data,
        entry.filters,
        entry.flags,
    )


def entry(
    version: int, is_base: bool = False, path: str | None = "shared/x", groups: tuple[int, ...] = (3, 5)
) -> SegmentRef:
    offsets = np.arange(len(groups), dtype=np.int64) * 50
    first, data = 0 if is_base else version, b"" if path else b"x" * 100
    return segment_ref(first, version, np.array(groups, np.uint32), offsets, 100, path, 400 if path else 100, data)


def one_chain(*chain: SegmentRef) -> ChainTable:
    return {StoreKey(0, "default"): [Chain(str(uuid.UUID(int=7)), 5, chain), *([Chain(str(uuid.UUID(int=0)), 0)] * 3)]}


def metadata_of(table: ChainTable) -> CheckpointMetadata:
    return loads(encode_metadata(17, batch_of(table), table, SOURCES, b"v1\n{}"))


def test_one_segment_is_one_key_groups_handle_trimmed_to_its_groups() -> None:
    metadata = metadata_of(one_chain(entry(30)))
    handle = metadata.operator_states[0].subtask_states[0].managed_keyed_state
    assert isinstance(handle, KeyGroupsStateHandle)
    assert handle.state_handle_id is None
    assert (handle.key_group_range.start, handle.key_group_range.end) == (3, 5)
    assert handle.group_range_offsets.offsets.tolist() == [0, -1, 50]
    assert handle.delegate_state_handle == RelativeFileStateHandle("../shared/x", 400)


def test_several_segments_are_a_changelog_handle_with_the_base_first() -> None:
    metadata = metadata_of(one_chain(entry(20, is_base=True), entry(29, path=None), entry(30)))
    handle = metadata.operator_states[0].subtask_states[0].managed_keyed_state
    assert isinstance(handle, ChangelogStateBackendHandle)
    assert handle.checkpoint_id is None
    assert handle.non_materialized_state_handles == ()
    assert len(handle.materialized_state_handles) == 3
    assert handle.materialization_id == 20
    assert handle.checkpointed_size == 100
    assert handle.state_handle_id == str(uuid.UUID(int=7))
    assert (handle.key_group_range.start, handle.key_group_range.end) == (0, 15)
    streams = [
        part.delegate_state_handle
        for part in handle.materialized_state_handles
        if isinstance(part, KeyGroupsStateHandle)
    ]
    assert streams[1] == ByteStreamStateHandle("delta-29", b"x" * 100)


def test_an_operator_state_has_an_id_that_stays_and_no_subtasks_without_state() -> None:
    operator = metadata_of(one_chain(entry(30))).operator_states[0]
    assert operator.operator_id == operator_id_of("11111111-2222-3333-4444-555555555555", "0/default")
    assert (operator.parallelism, operator.max_parallelism) == (4, 64)
    assert list(operator.subtask_states) == [0]


def test_sources_are_operator_state_with_one_element_per_source_partition() -> None:
    metadata = metadata_of(one_chain(entry(30)))
    kafka, files = metadata.operator_states[1:]
    assert kafka.operator_id == operator_id_of("11111111-2222-3333-4444-555555555555", "source/0")
    assert files.operator_id == operator_id_of("11111111-2222-3333-4444-555555555555", "source/2")
    handle = kafka.subtask_states[0].managed_operator_state
    assert isinstance(handle, OperatorStreamStateHandle)
    stream = handle.delegate_state_handle
    assert isinstance(stream, ByteStreamStateHandle)
    assert stream.data == b'{"t":{"0":5}}{"t":{"1":7}}'
    assert handle.state_name_to_partition_offsets["source-offsets"].offsets == (0, 13)


@pytest.mark.parametrize(
    ("offset", "elements"),
    [
        ('{"a":{"0":1,"10":22},"b":{"0":3}}', ['{"a":{"0":1}}', '{"a":{"10":22}}', '{"b":{"0":3}}']),
        ('{"logOffset":3}', ['{"logOffset":3}']),
        ('{"a":{"x":1}}', ['{"a":{"x":1}}']),
        ('{"a":{}}', ['{"a":{}}']),
        ('{"a":{"0":"late"}}', ['{"a":{"0":"late"}}']),
        ("17", ["17"]),
        ("no JSON", ["no JSON"]),
    ],
)
def test_elements_of_an_offset(offset: str, elements: list[str]) -> None:
    assert offset_elements(offset) == elements


def test_master_states_have_the_batch_and_sparks_offsets() -> None:
    metadata = metadata_of(one_chain(entry(30)))
    assert [(state.name, state.version) for state in metadata.master_states] == [
        ("spark-batch", 1),
        ("spark-offsets", 1),
    ]
    assert metadata.master_states[1].payload == b"v1\n{}"
    assert spark_batch_of(metadata).query_name == "näme"


@pytest.mark.parametrize("read", [decompose, state_files_of])
def test_without_our_master_state_it_is_not_ours(read: Callable[[CheckpointMetadata], object]) -> None:
    with pytest.raises(CheckpointError, match="not written by spark-ckpt"):
        read(CheckpointMetadata(1))
    with pytest.raises(UnsupportedFormatError, match="version 2"):
        read(CheckpointMetadata(1, (MasterState("spark-batch", b"{}", 2),)))


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"version": "x"}', b'{"batch_id": 1, "version": 2}'])
def test_a_master_state_that_is_damaged_is_a_typed_error(payload: bytes) -> None:
    with pytest.raises(CheckpointError, match="spark-batch"):
        SparkBatch.decode(payload)


@pytest.mark.parametrize("read", [decompose, state_files_of])
def test_a_path_out_of_the_checkpoint_is_refused(read: Callable[[CheckpointMetadata], object]) -> None:
    data = encode_metadata(
        17, batch_of(one_chain(entry(30, path="../../etc/x"))), one_chain(entry(30, path="../../etc/x"))
    )
    with pytest.raises(PathEscapeError):
        read(loads(data))


def shared_by_three() -> ChainTable:
    """Two segments shared by subtasks 1 to 3, except that subtask 2 has its own base instead of the first."""
    first, second, own = entry(20, is_base=True), entry(29, path="shared/y"), entry(28, is_base=True, path="shared/z")
    parts = [
        tuple(replace(part, size=30 + n, filters=(PartitionFilter(3, (n,)),)) for part in (first, second))
        for n in range(3)
    ]
    chains = ((), parts[0], (own, parts[1][1]), parts[2])
    return {StoreKey(0, "default"): [Chain(str(uuid.UUID(int=n)), 5, chain) for n, chain in enumerate(chains)]}


def test_of_subtasks_with_the_same_blocks_the_first_has_the_handle() -> None:
    table = shared_by_three()
    metadata = metadata_of(table)
    subtasks = metadata.operator_states[0].subtask_states
    assert list(subtasks) == [1, 2]
    carrier, own = subtasks[1].managed_keyed_state, subtasks[2].managed_keyed_state
    assert isinstance(carrier, ChangelogStateBackendHandle)
    assert len(carrier.materialized_state_handles) == 2
    assert isinstance(own, KeyGroupsStateHandle)
    assert own.delegate_state_handle == RelativeFileStateHandle("../shared/z", 400)
    batch, again = decompose(metadata)
    assert batch.encode() == batch_of(table).encode()
    for expected, found in zip(*(one[StoreKey(0, "default")] for one in (table, again)), strict=True):
        assert [describe(entry) for entry in found.entries] == [describe(entry) for entry in expected.entries]
    assert encode_metadata(17, batch, again, SOURCES, b"v1\n{}") == dumps(metadata, version=3), "once read, twice there"


def test_compressed_segments_need_a_reader_that_knows_codecs() -> None:
    plain, other = entry(20, is_base=True), replace(entry(30, path="shared/y"), flags=COMPRESSED.bit)
    assert Feature.COMPRESSED_BLOCKS.value not in batch_of(one_chain(plain, entry(30))).encode().decode()
    batch, table = decompose(metadata_of(one_chain(plain, other)))
    assert json.loads(batch.encode())["features"] == [Feature.COMPRESSED_BLOCKS.value]
    assert [each.has(COMPRESSED) for each in table[StoreKey(0, "default")][0].entries] == [False, True]


def test_ordered_bases_are_no_secret_to_readers_of_earlier_releases() -> None:
    """The order of rows changes nothing for a reader that ignores the column."""
    chains = one_chain(replace(entry(20, is_base=True), flags=ORDERED.bit), entry(30))
    batch, table = decompose(metadata_of(chains))
    assert "features" not in json.loads(batch.encode())
    assert [each.has(ORDERED) for each in table[StoreKey(0, "default")][0].entries] == [True, False]
    plain = batch_of(one_chain(entry(20, is_base=True), entry(30)))
    assert "ordered" not in json.loads(plain.encode())["stores"][0]


@pytest.mark.parametrize("column", [[0, 2], [0, -1], [1]])
def test_a_column_of_compressed_segments_that_cannot_be_is_a_typed_error(column: list[int]) -> None:
    fields = json.loads(batch_of(one_chain(entry(20, is_base=True), entry(30))).encode())
    fields["stores"][0]["compressed"] = packed(np.array(column, "<i4").tobytes())
    with pytest.raises(CheckpointError, match="spark-batch"):
        SparkBatch.decode(json.dumps(fields).encode())


@pytest.mark.parametrize("shared", [[0, 0, 0, 2, 4], [1, 0, 0, 2, 4, 4], [0, 0, 0, -2, 4, 4], [0, 0, 0, 2, 4, 6]])
def test_shared_handles_that_cannot_be_are_a_typed_error(shared: list[int]) -> None:
    batch = batch_of(shared_by_three())
    segments = replace(batch.stores[0].segments, shared=np.array(shared, np.int64))
    damaged = replace(batch, stores=(replace(batch.stores[0], segments=segments),))
    with pytest.raises(CheckpointError, match=r"shared handles|ends after"):
        SparkBatch.decode(damaged.encode())


def test_fewer_handles_than_listed_are_noticed() -> None:
    batch = batch_of(one_chain(entry(20, is_base=True), entry(30)))
    with pytest.raises(CheckpointError, match="1 segments"):
        decompose(loads(encode_metadata(17, batch, one_chain(entry(30)))))
