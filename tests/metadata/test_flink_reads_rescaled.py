"""Flink loads the metadata of a rescale, and finds each block exactly once, in a subtask that owns its key group."""

from __future__ import annotations

from pathlib import Path

from spark_ckpt import metadata as m
from spark_ckpt.format.key_groups import overlapping_ranges
from spark_ckpt.location.listing import list_completed
from spark_ckpt.operations.rescale import rescale
from tests.support.flink_check import assert_flink_agrees, check
from tests.support.stopped_query import FACTORS, StoppedQuery, blocks

CHAINS = ((8,), (2,), (3,), (48,), (64,), (7, 6), (6, 63, 4))
"""Rescales of 64 key groups: partitions with whole key groups, with shared key groups, and successive rescales."""


def newest(query: StoppedQuery) -> Path:
    return query.directory / "ckpt" / list_completed(query.storage).records[-1].metadata.path


def test_flink_finds_each_block_once_where_it_belongs(tmp_path: Path) -> None:
    queries = {chain: StoppedQuery(tmp_path / "-".join(map(str, chain))) for chain in CHAINS}
    before = {chain: m.load(newest(query)) for chain, query in queries.items()}
    for chain, query in queries.items():
        for partitions in chain:
            rescale(query.storage, partitions)
    verdicts = check(newest(query) for query in queries.values())
    for chain, query in queries.items():
        found = assert_flink_agrees(newest(query), verdicts[newest(query)])
        operator = next(state for state in found.operator_states if state.parallelism == chain[-1])
        for subtask, group, _ in blocks(operator):
            assert any(group in owned for owned in overlapping_ranges(subtask, chain[-1], FACTORS)), (chain, subtask)
        (original,) = (state for state in before[chain].operator_states if state.parallelism == 4)
        assert sorted(place for *_, place in blocks(operator)) == sorted(place for *_, place in blocks(original))
