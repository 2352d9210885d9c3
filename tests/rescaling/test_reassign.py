"""Any number of reassignments preserves the state, and puts each row into the partition of its hash."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from math import gcd
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.key_groups import factors, key_group_of, overlapping_ranges
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_flags import COMPRESSED
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import Section, SegmentKind, decode_block
from spark_ckpt.rescaling.reassign import reassign
from tests.support.segments import encode_segment, segment_ref

FACTORS = tuple(factors(4, 24))
KEYS = 60
Changes: TypeAlias = dict[int, int | None]
HASHES = [int(np.int32((key * 2654435761) % 2**32 - 2**31)) for key in range(KEYS)]


@dataclass
class World:
    """Model of a store: files, chains of its subtasks, and expected rows."""

    expected: dict[int, int] = field(default_factory=dict)
    version: int = 0
    chains: list[Chain] = field(default_factory=lambda: [Chain(uuid.uuid4().hex, 0) for _ in range(4)])
    files: dict[str, bytes] = field(default_factory=dict)

    def batch(self, changes: Changes, based: set[int]) -> None:
        """Puts and removes keys; the partitions `based` also bring a base of the previous version."""
        parallelism = len(self.chains)
        self.version += 1
        bases: dict[int, Changes] = {p: {**self.load(self.chains[p])} for p in based if p < parallelism}
        before = dict(self.expected)
        for key, value in changes.items():
            if value is None:
                self.expected.pop(key, None)
            else:
                self.expected[key] = value
        deltas: list[Changes] = [
            {k: v for k, v in changes.items() if HASHES[k] % parallelism == p and (v is not None or k in before)}
            for p in range(parallelism)
        ]
        brought = self.write(SegmentKind.DELTA, self.version, dict(enumerate(deltas)))
        new = self.write(SegmentKind.BASE, self.version - 1, bases)
        for p, chain in enumerate(self.chains):
            base_version = self.version - 1 if p in bases else 0
            rows = sum(1 for key in self.expected if HASHES[key] % parallelism == p)
            self.chains[p] = chain.next(uuid.uuid4().hex, rows, brought.get(p), new.get(p), base_version)

    def write(self, kind: SegmentKind, version: int, contents: dict[int, Changes]) -> dict[int, SegmentRef]:
        """Writes segments of several subtasks, one after another, to one file."""
        path = f"shared/{uuid.uuid4().hex}"
        data, written = b"", {}
        for partition, entries in contents.items():
            groups: dict[int, list[tuple[bytes, bytes | None]]] = {}
            for key, value in entries.items():
                group = key_group_of(HASHES[key], FACTORS)
                groups.setdefault(group, []).append((encoded(key), None if value is None else encoded(value)))
            if groups:
                segment = encode_segment(kind, version, {g: [Section(tuple(e))] for g, e in sorted(groups.items())})
                offsets = segment.offsets + len(data)
                data += segment.data
                is_base = kind is SegmentKind.BASE
                size = len(segment.data)
                written[partition] = segment_ref(
                    0 if is_base else version, version, segment.key_groups, offsets, size, path, 0
                )
        self.files[path] = data
        for entry in written.values():
            entry.file_size = len(data)
        return written

    def rescale(self, parallelism: int) -> None:
        rows, size = sum(c.rows for c in self.chains), sum(c.size for c in self.chains)
        self.chains = reassign(self.chains, parallelism, FACTORS)
        assert (sum(c.rows for c in self.chains), sum(c.size for c in self.chains)) == (rows, size)

    def load(self, chain: Chain) -> dict[int, int]:
        """Rows of a subtask, as loaded by an executor."""
        rows: dict[int, int] = {}
        kinds = [not entry.is_base for entry in chain.entries]
        assert kinds == sorted(kinds), "a base after a delta"
        for entry in chain.entries:
            assert entry.path is not None
            assert np.all(np.diff(entry.key_groups.astype(np.int64)) > 0), "a key group twice"
            for offset, group in zip(entry.offsets.tolist(), entry.key_groups.tolist(), strict=True):
                block = decode_block(self.files[entry.path], offset, entry.path)
                assert (block.key_group, block.version) == (group, entry.version)
                for key, value in block.sections[0].entries:
                    number = int.from_bytes(key, "big")
                    if any(HASHES[number] % modulo not in owners for modulo, owners in entry.filters):
                        continue
                    if value is None:
                        rows.pop(number, None)
                    else:
                        assert isinstance(value, bytes)
                        rows[number] = int.from_bytes(value, "big")
        return rows

    def check(self) -> None:
        parallelism = len(self.chains)
        for partition, chain in enumerate(self.chains):
            own = {key: value for key, value in self.expected.items() if HASHES[key] % parallelism == partition}
            assert self.load(chain) == own, f"partition {partition} of {parallelism}"
            ranges = overlapping_ranges(partition, parallelism, FACTORS)
            for entry in chain.entries:
                assert all(any(group in r for r in ranges) for group in entry.key_groups.tolist())


def encoded(number: int) -> bytes:
    return number.to_bytes(8, "big")


batches = st.tuples(
    st.dictionaries(st.integers(0, KEYS - 1), st.none() | st.integers(0, 1000), max_size=30),
    st.sets(st.integers(0, 23)),
)
steps = st.lists(st.one_of(batches, st.integers(1, 24)), min_size=1, max_size=14)


@settings(max_examples=300)
@given(steps)
def test_any_chain_of_rescales_between_any_batches(steps: list[tuple[Changes, set[int]] | int]) -> None:
    world = World()
    world.batch({key: key for key in range(0, KEYS, 2)}, set())
    for step in steps:
        if isinstance(step, int):
            world.rescale(step)
        else:
            world.batch(*step)
        world.check()


def filled() -> World:
    world = World()
    world.batch({key: key for key in range(KEYS)}, set())
    return world


@pytest.mark.parametrize("parallelism", [1, 2, 4, 8, 24])
def test_partitions_that_own_whole_key_groups_need_no_filter(parallelism: int) -> None:
    world = filled()
    world.rescale(parallelism)
    entries = [entry for chain in world.chains for entry in chain.entries]
    assert not any(entry.filters for entry in entries)
    # Each block has exactly one owner.
    assert sum(entry.key_groups.size for entry in entries) == len({key_group_of(h, FACTORS) for h in HASHES})


@pytest.mark.parametrize("parallelism", [3, 5, 9, 10, 18])
def test_partitions_that_share_key_groups_have_one_filter(parallelism: int) -> None:
    world = filled()
    world.rescale(parallelism)
    for partition, chain in enumerate(world.chains):
        expected = () if 24 % parallelism == 0 else (PartitionFilter(parallelism, (partition,)),)
        assert {entry.filters for entry in chain.entries} <= {expected}


@pytest.mark.parametrize("on_the_way", [[5], [5, 7], [9, 5, 10, 7], [18, 5]])
def test_what_nobody_has_replaced_is_put_together_again(on_the_way: list[int]) -> None:
    world = filled()
    for parallelism in on_the_way:
        world.rescale(parallelism)
    world.rescale(4)
    assert [len(chain.entries) for chain in world.chains] == [1, 1, 1, 1]
    assert not any(entry.filters for chain in world.chains for entry in chain.entries)
    world.check()


def test_what_an_owner_has_replaced_stays_filtered() -> None:
    """Row 0 is removed and its owner makes a base: the old segment, still needed by others, must not restore it."""
    world = filled()
    world.rescale(5)
    owner = HASHES[0] % 5
    world.batch({0: None}, set())
    world.batch({}, {owner})
    for parallelism in (7, 4, 5, 24):
        world.rescale(parallelism)
        world.check()
        filters = {entry.filters[0] for chain in world.chains for entry in chain.entries if entry.filters}
        if parallelism in (7, 4):
            assert PartitionFilter(5, tuple(p for p in range(5) if p != owner)) in filters


def test_handles_do_not_reach_across_the_key_groups_of_others() -> None:
    """With half of the original partitions, each partition owns two separate ranges."""
    numbering = tuple(factors(8, 1024))
    groups, offsets = np.arange(1024, dtype=np.uint32), np.arange(1024, dtype=np.int64) * 100
    parts = [slice(p * 128, (p + 1) * 128) for p in range(8)]
    entries = [segment_ref(3, 3, groups[p], offsets[p], 12_800, "shared/deltas", 102_400) for p in parts]
    chains = reassign([Chain("0" * 32, 5, (entry,)) for entry in entries], 4, numbering)
    for partition, chain in enumerate(chains):
        ranges = [(int(entry.key_groups[0]), int(entry.key_groups[-1])) for entry in chain.entries]
        assert ranges == [(r.start, r.end) for r in overlapping_ranges(partition, 4, numbering)]
        assert [entry.size for entry in chain.entries] == [12_800, 12_800]
    again = reassign(chains, 8, numbering)
    assert [len(chain.entries) for chain in again] == [1] * 8


def test_rows_are_exact_where_partitions_are_joined() -> None:
    chains = [Chain("0" * 32, rows) for rows in (5, 70, 1, 4)]
    assert [chain.rows for chain in reassign(chains, 2, FACTORS)] == [6, 74]
    assert [chain.rows for chain in reassign(chains, 1, FACTORS)] == [80]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=24), st.integers(1, 24))
def test_rows_are_shared_evenly_where_partitions_are_divided(rows: list[int], parallelism: int) -> None:
    new = [chain.rows for chain in reassign([Chain("0" * 32, n) for n in rows], parallelism, FACTORS)]
    common = gcd(len(rows), parallelism)
    for residue in range(common):
        shares = new[residue::common]
        assert sum(shares) == sum(rows[residue::common])
        assert max(shares) - min(shares) <= 1


def test_ids_are_new_and_all_different() -> None:
    world = filled()
    before = {chain.state_id for chain in world.chains}
    world.rescale(8)
    assert len({chain.state_id for chain in world.chains} - before) == 8


def test_merged_deltas_keep_their_versions_and_are_not_joined_with_others_of_their_last_one() -> None:
    groups, offsets = np.arange(8, dtype=np.uint32), np.arange(8, dtype=np.int64) * 100
    spans = [(5, 5), (3, 5)]
    entries = [
        segment_ref(first, version, groups[p * 4 : p * 4 + 4], offsets[p * 4 : p * 4 + 4], 400, "shared/x", 800)
        for p, (first, version) in enumerate(spans)
    ]
    (chain,) = reassign([Chain("0" * 32, 5, (entry,)) for entry in entries], 1, (2, 4))
    assert sorted((entry.first_version, entry.version) for entry in chain.entries) == [(3, 5), (5, 5)]
    again = reassign([chain], 2, (2, 4))
    assert [[(entry.first_version, entry.version) for entry in part.entries] for part in again] == [[(5, 5)], [(3, 5)]]


def test_compressed_segments_stay_so_and_joined_ones_are_if_a_part_is() -> None:
    groups, offsets = np.arange(8, dtype=np.uint32), np.arange(8, dtype=np.int64) * 100
    entries = [
        segment_ref(5, 5, groups[p * 4 : p * 4 + 4], offsets[p * 4 : p * 4 + 4], 400, "shared/x", 800, flags=flags)
        for p, flags in enumerate((0, COMPRESSED.bit))
    ]
    other = segment_ref(4, 4, groups[:4], offsets[:4], 400, "shared/y", 400)
    chains = [Chain("0" * 32, 5, (other, entries[0])), Chain("0" * 32, 5, (entries[1],))]
    (chain,) = reassign(chains, 1, (2, 4))
    assert [(entry.version, entry.has(COMPRESSED)) for entry in chain.entries] == [(4, False), (5, True)]
    for part in reassign([chain], 2, (2, 4)) + reassign([chain], 3, (2, 4)):
        assert all(entry.has(COMPRESSED) == (entry.path == "shared/x") for entry in part.entries)
