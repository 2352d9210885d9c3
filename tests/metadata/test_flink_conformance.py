"""Flink's loader and ours agree: on files that Flink wrote, on edge cases, and on whatever we write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark_ckpt import metadata as m
from tests.metadata.corpus import FLINK, MUTANTS
from tests.metadata.strategies import KEYED_KINDS, NAME, checkpoints
from tests.support.flink_check import Verdict, assert_flink_agrees, check, class_path


@pytest.fixture(scope="session")
def flink() -> Callable[[list[Path]], dict[Path, Verdict]]:
    """Asks Flink; the check is built before the first question."""
    class_path()
    return check


Flink = Callable[[list[Path]], dict[Path, Verdict]]


def examples(strategy: st.SearchStrategy[m.CheckpointMetadata], count: int) -> list[m.CheckpointMetadata]:
    """Some hundred examples at once, because a JVM for each would take minutes."""
    drawn: list[m.CheckpointMetadata] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(metadata: m.CheckpointMetadata) -> None:
        drawn.append(metadata)

    draw()
    return drawn


def test_flink_says_the_same_of_the_corpus_as_the_corpus(flink: Flink) -> None:
    verdicts = flink([vector.path for vector in (*FLINK, *MUTANTS)])
    for vector in (*FLINK, *MUTANTS):
        verdict = verdicts[vector.path]
        assert verdict.loads == vector.loads, vector
        if verdict.loads:
            assert_flink_agrees(vector.path, verdict)
            assert verdict.bytes_consumed == vector.dump["bytesConsumed"]


@pytest.mark.parametrize(("version", "count"), [(2, 80), (3, 150), (4, 40)])
def test_flink_reads_what_we_write(flink: Flink, tmp_path: Path, version: int, count: int) -> None:
    written = {}
    for number, metadata in enumerate(examples(checkpoints(version), count)):
        path = tmp_path / f"chk-{number}" / "_metadata"
        m.dump(metadata, path, version)
        written[path] = metadata
    verdicts = flink(list(written))
    for path, metadata in written.items():
        read = assert_flink_agrees(path, verdicts[path])
        assert read.operator_states == metadata.operator_states
        assert verdicts[path].bytes_consumed == path.stat().st_size


def test_flink_reads_every_kind_of_keyed_handle(flink: Flink, tmp_path: Path) -> None:
    written: dict[Path, str] = {}
    for kind in KEYED_KINDS:
        handles = kind(NAME).map(
            lambda handle: m.CheckpointMetadata(
                1, (), (m.OperatorState(bytes(16), 1, 8, {0: m.OperatorSubtaskState(managed_keyed_state=handle)}),)
            )
        )
        for number, metadata in enumerate(examples(handles, 25)):
            path = tmp_path / f"{kind.__name__}-{number}" / "_metadata"
            m.dump(metadata, path)
            written[path] = kind.__name__
    verdicts = flink(list(written))
    agreed = Counter(written[path] for path in written if assert_flink_agrees(path, verdicts[path]))
    assert len(agreed) == len(KEYED_KINDS)


def test_our_layout_of_base_and_deltas(flink: Flink, tmp_path: Path) -> None:
    """What the coordinator composes: key-group handles on shared files in the materialised list, base before deltas."""
    base = m.KeyGroupsStateHandle(
        m.KeyGroupRangeOffsets.of(0, [0, 40, 80, 80]), m.FileStateHandle("s3://b/ckpt/shared/a", 120), "base"
    )
    delta = m.KeyGroupsStateHandle(
        m.KeyGroupRangeOffsets.of(0, [7000, 7000, 7020, 7100]), m.RelativeFileStateHandle("../shared/m", 9000), "delta"
    )
    inline = m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(2, [0]), m.ByteStreamStateHandle("d", b"x" * 30), "last")
    keyed = m.ChangelogStateBackendHandle((base, delta, inline), (), m.KeyGroupRange(0, 3), 150, 3, "subtask", 3)
    source = m.OperatorStreamStateHandle(
        {"kafka": m.StateMetaInfo((0, 17, 40), m.DistributionMode.SPLIT_DISTRIBUTE)},
        m.ByteStreamStateHandle("offsets", b"o" * 60),
    )
    metadata = m.CheckpointMetadata(
        3,
        (m.MasterState("spark-batch", b'{"batch_id": 2}', 1),),
        (
            m.OperatorState(bytes(range(16)), 2, 8, {0: m.OperatorSubtaskState(managed_keyed_state=keyed)}),
            m.OperatorState(bytes(16), 1, 1, {0: m.OperatorSubtaskState(managed_operator_state=source)}),
        ),
    )
    paths = []
    for version in (2, 3):
        paths.append(tmp_path / f"v{version}" / "_metadata")
        m.dump(metadata, paths[-1], version)
    verdicts = flink(paths)
    for path in paths:
        assert assert_flink_agrees(path, verdicts[path]).operator_states == metadata.operator_states


def test_assert_flink_agrees_notices_a_difference(flink: Flink, tmp_path: Path) -> None:
    path = tmp_path / "_metadata"
    m.dump(m.CheckpointMetadata(1), path)
    verdict = flink([tmp_path])[tmp_path]
    m.dump(m.CheckpointMetadata(2), path)
    with pytest.raises(AssertionError):
        assert_flink_agrees(tmp_path, verdict)
    path.write_bytes(b"no metadata")
    with pytest.raises(AssertionError, match="Flink refuses"):
        assert_flink_agrees(tmp_path)
