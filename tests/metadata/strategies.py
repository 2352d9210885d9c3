"""Random metadata with every kind of handle, restricted to what Flink loads."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import strategies as st

from spark_ckpt import metadata as m
from spark_ckpt.metadata.paths import refusal
from tests.support.flink_path import as_flink_path

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
SIZE = st.integers(-1, 2**63 - 1)
NUMBER = st.integers(0, 2**63 - 1)


def as_java_has_it(text: str) -> str:
    """Text with adjacent lone surrogates joined, because Java reads such a pair as one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


NAME = (
    st.text(max_size=8) | st.text(st.sampled_from("\0\x7f\x80\u07ff\u0800\ud83d\ude00\U0001f600\uffff"), max_size=6)
).map(as_java_has_it)
"""Any Java string, including lone surrogates."""

COMPONENTS = st.lists(
    st.sampled_from(["a", "B-1", "chk_7", "x.y", "0f3c9b", "shared", "z" * 40]), min_size=1, max_size=4
)
ODD_PATH = st.text(st.sampled_from("aZ:/\\.?#[]@%* -\0\x85é\u2028\ud83d\U0001f600"), max_size=12).map(as_java_has_it)
"""Unusual texts, most of which Flink accepts as paths."""


def stays_a_path(text: str) -> bool:
    """True if Flink accepts the text as a path, and also the path that it writes for it: for `.`, an empty text."""
    return refusal(text) is None and refusal(as_flink_path(text)) is None


PATH = st.builds(
    lambda root, components: f"{root}/{'/'.join(components)}",
    st.sampled_from(["s3://b", "hdfs://n:9000", "file:", "file://", "hdfs://u@[::1]:80", ""]),
    COMPONENTS,
) | ODD_PATH.filter(stays_a_path)
RELATIVE_PATH = st.builds(
    lambda up, components: up + "/".join(components), st.sampled_from(["", "../", "./", "/"]), COMPONENTS
)
BYTES = st.binary(max_size=80)
OFFSETS = st.lists(I64, max_size=5).map(tuple)


@st.composite
def ranges(draw: st.DrawFn, least: int = 0) -> m.KeyGroupRange:
    start = draw(st.integers(0, 40000))
    return m.KeyGroupRange(start, start + draw(st.integers(least, 300)) - 1)


GROUP_RANGE_OFFSETS = st.builds(
    lambda start, offsets: m.KeyGroupRangeOffsets.of(start, np.array(offsets, dtype=np.int64)),
    st.integers(0, 40000),
    st.lists(I64, max_size=12),
)

# ---- streams ---------------------------------------------------------------------------------------------------------

SEGMENT = st.builds(m.SegmentFileStateHandle, PATH, I64, I64, st.sampled_from(m.CheckpointedStateScope), NAME)
EMPTY_SEGMENT = st.just(m.EmptySegmentFileStateHandle())
PLAIN_STREAM: st.SearchStrategy[m.StreamStateHandle] = st.one_of(
    st.builds(m.ByteStreamStateHandle, NAME, BYTES),
    st.builds(m.FileStateHandle, PATH, SIZE),
    st.builds(m.RelativeFileStateHandle, RELATIVE_PATH, SIZE),
    SEGMENT,
    EMPTY_SEGMENT,
)
STREAM = PLAIN_STREAM | st.builds(m.KeyGroupsStateHandle, GROUP_RANGE_OFFSETS, PLAIN_STREAM)

# ---- keyed state -----------------------------------------------------------------------------------------------------

KEY_GROUPS = st.builds(m.KeyGroupsStateHandle, GROUP_RANGE_OFFSETS, STREAM, st.none() | NAME)
SAVEPOINT_KEY_GROUPS = st.builds(m.KeyGroupsSavepointStateHandle, GROUP_RANGE_OFFSETS, STREAM)

BACKEND_IDENTIFIER = st.uuids().map(str) | st.text("abc-", max_size=10) | NAME
FILES = st.lists(st.builds(m.HandleAndLocalPath, NAME, STREAM), max_size=3).map(tuple)
_INCREMENTAL = (BACKEND_IDENTIFIER, ranges(), I64, st.none() | STREAM, FILES, FILES)
INCREMENTAL = st.builds(m.IncrementalRemoteKeyedStateHandle, *_INCREMENTAL) | st.builds(
    m.IncrementalRemoteKeyedStateHandle, *_INCREMENTAL, SIZE, NAME
)

CHANGES = st.lists(st.builds(m.StateChange, st.integers(-1, 2**31 - 1), BYTES), max_size=4).map(tuple)
IN_MEMORY_CHANGES = st.builds(m.InMemoryChangelogStateHandle, CHANGES, NUMBER, NUMBER, ranges(), NAME)
CHANGES_IN_FILES = st.builds(
    m.ChangelogStateHandleStreamImpl,
    st.lists(st.builds(m.HandleAndOffset, st.none() | STREAM, I64), max_size=3).map(tuple),
    ranges(),
    I64,
    I64,
    NAME,
    st.none() | st.just("filesystem") | NAME,
)
CHANGELOG = st.builds(
    m.ChangelogStateBackendHandle,
    st.lists(
        st.one_of(st.none(), KEY_GROUPS, SAVEPOINT_KEY_GROUPS, INCREMENTAL, IN_MEMORY_CHANGES, CHANGES_IN_FILES),
        max_size=4,
    ).map(tuple),
    st.lists(IN_MEMORY_CHANGES | CHANGES_IN_FILES, max_size=3).map(tuple),
    ranges(least=1),
    I64,
    I64,
    NAME,
    st.none() | I64,
)

KEYED: st.SearchStrategy[m.KeyedStateHandle] = st.one_of(
    KEY_GROUPS, SAVEPOINT_KEY_GROUPS, INCREMENTAL, IN_MEMORY_CHANGES, CHANGES_IN_FILES, CHANGELOG
)

# ---- operator state --------------------------------------------------------------------------------------------------

STATES = st.dictionaries(NAME, st.builds(m.StateMetaInfo, OFFSETS, st.sampled_from(m.DistributionMode)), max_size=4)
OPERATOR_STATE: st.SearchStrategy[m.OperatorStateHandle] = st.builds(
    m.OperatorStreamStateHandle, STATES, STREAM
) | st.builds(m.FileMergingOperatorStreamStateHandle, STATES, PATH, PATH, SEGMENT | EMPTY_SEGMENT, st.booleans())

# ---- operators -------------------------------------------------------------------------------------------------------

INPUT_CHANNEL = st.builds(m.InputChannelStateHandle, I32, st.builds(m.InputChannelInfo, I32, I32), OFFSETS, I64, STREAM)
RESULT_SUBPARTITION = st.builds(
    m.ResultSubpartitionStateHandle, I32, st.builds(m.ResultSubpartitionInfo, I32, I32), OFFSETS, I64, STREAM
)


@cache  # used within `operators`, where building the strategy takes far longer than drawing from it
def subtasks(version: int) -> st.SearchStrategy[m.OperatorSubtaskState]:
    running = [st.none() | OPERATOR_STATE, st.none() | OPERATOR_STATE, st.none() | KEYED, st.none() | KEYED]
    if version == 2:
        return st.builds(m.OperatorSubtaskState, *running)
    inputs = st.lists(INPUT_CHANNEL, max_size=2).map(tuple)
    results = st.lists(RESULT_SUBPARTITION, max_size=2).map(tuple)
    return st.builds(m.OperatorSubtaskState, *running, inputs, results) | st.just(m.FinishedOperatorSubtaskState())


@st.composite
def operators(draw: st.DrawFn, version: int) -> m.OperatorState:
    operator_id = draw(st.binary(min_size=16, max_size=16))
    parallelism = draw(st.integers(0, 6))
    max_parallelism = draw(st.integers(parallelism, 40000))
    if version > 2 and draw(st.integers(0, 5)) == 0:
        return m.FullyFinishedOperatorState(operator_id, parallelism, max_parallelism)
    indices = draw(st.lists(st.sampled_from(range(parallelism)), unique=True, max_size=3)) if parallelism else []
    states = {index: draw(subtasks(version)) for index in indices}
    coordinator = None if version == 2 else draw(st.none() | st.builds(m.ByteStreamStateHandle, NAME, BYTES))
    return m.OperatorState(operator_id, parallelism, max_parallelism, states, coordinator)


def checkpoints(version: int) -> st.SearchStrategy[m.CheckpointMetadata]:
    """Random checkpoints that a file of the version can hold."""
    return st.builds(
        m.CheckpointMetadata,
        NUMBER,
        st.lists(st.builds(m.MasterState, NAME, BYTES, I32), max_size=3).map(tuple),
        st.lists(operators(version), max_size=3).map(tuple),
        st.just(version),
    )
