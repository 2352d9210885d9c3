"""Random metadata of every kind of handle, within what Flink loads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from hypothesis import strategies as st

from spark_ckpt import metadata as m

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
SIZE = st.integers(-1, 2**63 - 1)
COUNT = st.integers(0, 2**31 - 1)

NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
"""Any text without lone surrogates, which the report in JSON could not carry."""

JAVA_NAME = (
    st.text(max_size=8) | st.text(st.sampled_from("\0\x7f\x80\u07ff\u0800\ud83d\ude00\U0001f600\uffff"), max_size=6)
).map(lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"))
"""Any text that Java knows, lone surrogates too. To Java two that make a pair are one character, so here they are."""

COMPONENTS = st.lists(
    st.sampled_from(["a", "B-1", "chk_7", "x.y", "0f3c9b", "shared", "z" * 40]), min_size=1, max_size=4
)

PATH = st.builds(
    lambda root, components: f"{root}/{'/'.join(components)}",
    st.sampled_from(["s3://b", "hdfs://n:9000", "file:", ""]),
    COMPONENTS,
)
"""Paths that Flink reports as they are; it resolves components such as `..` and leaves out empty ones."""

RELATIVE_PATH = st.builds(lambda up, components: up + "/".join(components), st.sampled_from(["", "../"]), COMPONENTS)
BYTES = st.binary(max_size=80)
OFFSETS = st.lists(I64, max_size=5).map(tuple)


@st.composite
def ranges(draw: st.DrawFn, least: int = 0) -> m.KeyGroupRange:
    start = draw(st.integers(0, 40000))
    return m.KeyGroupRange(start, start + draw(st.integers(least, 300)) - 1)


@st.composite
def group_range_offsets(draw: st.DrawFn) -> m.KeyGroupRangeOffsets:
    offsets = draw(st.lists(I64, max_size=12))
    # Flink forgets where an empty range started.
    return m.KeyGroupRangeOffsets.of(draw(st.integers(0, 40000)), np.array(offsets, dtype=np.int64))


def plain_streams(names: st.SearchStrategy[str] = NAME) -> st.SearchStrategy[m.StreamStateHandle]:
    return st.one_of(
        st.builds(m.ByteStreamStateHandle, names, BYTES),
        st.builds(m.FileStateHandle, PATH, SIZE),
        st.builds(m.RelativeFileStateHandle, RELATIVE_PATH, SIZE),
        segments(names),
        st.just(m.EmptySegmentFileStateHandle()),
    )


def segments(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.SegmentFileStateHandle]:
    return st.builds(m.SegmentFileStateHandle, PATH, I64, I64, st.sampled_from(m.CheckpointedStateScope), names)


def streams(names: st.SearchStrategy[str] = NAME) -> st.SearchStrategy[m.StreamStateHandle]:
    plain = plain_streams(names)
    return plain | st.builds(m.KeyGroupsStateHandle, group_range_offsets(), plain)


def files(names: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[m.HandleAndLocalPath, ...]]:
    return st.lists(st.builds(m.HandleAndLocalPath, names, plain_streams(names)), max_size=3).map(tuple)


def key_groups(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.KeyGroupsStateHandle]:
    return st.builds(m.KeyGroupsStateHandle, group_range_offsets(), streams(names), st.none() | names)


def savepoint_key_groups(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.KeyGroupsSavepointStateHandle]:
    return st.builds(m.KeyGroupsSavepointStateHandle, group_range_offsets(), streams(names))


def sized_streams(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.StreamStateHandle]:
    """Streams of known size: without a checkpointed size Flink adds them up, and a sum must not overflow."""
    return st.builds(m.ByteStreamStateHandle, names, BYTES) | st.builds(m.FileStateHandle, PATH, st.integers(0, 2**50))


def incremental(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.IncrementalRemoteKeyedStateHandle]:
    backend = st.uuids().map(str) | st.text("abc-", max_size=10)
    sized_files = st.lists(st.builds(m.HandleAndLocalPath, names, sized_streams(names)), max_size=3).map(tuple)
    old = st.builds(
        m.IncrementalRemoteKeyedStateHandle,
        backend,
        ranges(),
        I64,
        st.none() | sized_streams(names),
        sized_files,
        sized_files,
    )
    new = st.builds(
        m.IncrementalRemoteKeyedStateHandle,
        backend,
        ranges(),
        I64,
        st.none() | streams(names),
        files(names),
        files(names),
        st.integers(0, 2**63 - 1),
        names,
    )
    return old | new


def in_memory_changes(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.InMemoryChangelogStateHandle]:
    change = st.builds(m.StateChange, st.integers(-1, 2**31 - 1), BYTES)
    changes = st.lists(change, max_size=4).map(tuple)
    return st.builds(m.InMemoryChangelogStateHandle, changes, COUNT, COUNT, ranges(), names)


def changes_in_files(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.ChangelogStateHandleStreamImpl]:
    parts = st.lists(st.builds(m.HandleAndOffset, st.none() | streams(names), I64), max_size=3).map(tuple)
    return st.builds(
        m.ChangelogStateHandleStreamImpl, parts, ranges(), I64, I64, names, st.none() | st.just("filesystem")
    )


def changelog(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.ChangelogStateBackendHandle]:
    kinds = (st.none(), key_groups(names), savepoint_key_groups(names), incremental(names), in_memory_changes(names))
    materialized = st.lists(st.one_of(kinds), max_size=4).map(tuple)
    changes = st.lists(in_memory_changes(names) | changes_in_files(names), max_size=3).map(tuple)
    return st.builds(
        m.ChangelogStateBackendHandle, materialized, changes, ranges(least=1), I64, I64, names, st.none() | I64
    )


KEYED_KINDS: tuple[Callable[[st.SearchStrategy[str]], st.SearchStrategy[m.KeyedStateHandle]], ...] = (
    key_groups,
    savepoint_key_groups,
    incremental,
    in_memory_changes,
    changes_in_files,
    changelog,
)


def keyed(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.KeyedStateHandle | None]:
    return st.none() | st.one_of([kind(names) for kind in KEYED_KINDS])


def operator_state(names: st.SearchStrategy[str]) -> st.SearchStrategy[m.OperatorStateHandle | None]:
    info = st.builds(m.StateMetaInfo, OFFSETS, st.sampled_from(m.DistributionMode))
    states = st.dictionaries(names, info, max_size=4)
    return st.one_of(
        st.none(),
        st.builds(m.OperatorStreamStateHandle, states, streams(names)),
        st.builds(
            m.FileMergingOperatorStreamStateHandle,
            states,
            PATH,
            PATH,
            segments(names) | st.just(m.EmptySegmentFileStateHandle()),
            st.booleans(),
        ),
    )


@cache  # drawn from within `operators`: making the strategy anew each time takes far longer than drawing
def subtasks(names: st.SearchStrategy[str], version: int) -> st.SearchStrategy[m.OperatorSubtaskState]:
    running = [operator_state(names), operator_state(names), keyed(names), keyed(names)]
    if version == 2:
        return st.builds(m.OperatorSubtaskState, *running)
    inputs = st.builds(
        m.InputChannelStateHandle, I32, st.builds(m.InputChannelInfo, I32, I32), OFFSETS, I64, streams(names)
    )
    results = st.builds(
        m.ResultSubpartitionStateHandle,
        I32,
        st.builds(m.ResultSubpartitionInfo, I32, I32),
        OFFSETS,
        I64,
        streams(names),
    )
    with_channels = st.builds(
        m.OperatorSubtaskState,
        *running,
        st.lists(inputs, max_size=2).map(tuple),
        st.lists(results, max_size=2).map(tuple),
    )
    return with_channels | st.just(m.FinishedOperatorSubtaskState())


@st.composite
def operators(draw: st.DrawFn, names: st.SearchStrategy[str], version: int) -> m.OperatorState:
    operator_id = draw(st.binary(min_size=16, max_size=16))
    parallelism = draw(st.integers(0, 6))
    max_parallelism = draw(st.integers(parallelism, 40000))
    if version > 2 and draw(st.integers(0, 5)) == 0:
        return m.FullyFinishedOperatorState(operator_id, parallelism, max_parallelism)
    indices = draw(st.lists(st.sampled_from(range(parallelism)), unique=True, max_size=3)) if parallelism else []
    states = {index: draw(subtasks(names, version)) for index in indices}
    coordinator = None if version == 2 else draw(st.none() | st.builds(m.ByteStreamStateHandle, names, BYTES))
    return m.OperatorState(operator_id, parallelism, max_parallelism, states, coordinator)


def checkpoints(version: int, names: st.SearchStrategy[str] = NAME) -> st.SearchStrategy[m.CheckpointMetadata]:
    """Checkpoints that a file of the version can hold."""
    return st.builds(
        m.CheckpointMetadata,
        st.integers(0, 2**63 - 1),
        st.lists(st.builds(m.MasterState, names, BYTES, I32), max_size=3).map(tuple),
        st.lists(operators(names, version), max_size=3).map(tuple),
        st.just(version),
    )
