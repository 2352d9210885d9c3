from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.checkpoint.chains import Chain, all_entries, chain_of, files_of
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from tests.support.segments import segment_ref


def entry(
    version: int, is_base: bool = False, size: int = 10, path: str | None = "shared/x", covers: int = 1
) -> SegmentRef:
    data = b"x" * size if path is None else b""
    first_version = 0 if is_base else version - covers + 1
    return segment_ref(first_version, version, np.array([1], np.uint32), np.array([0]), size, path, size, data)


def versions(chain: Chain) -> list[tuple[str, int]]:
    return [("base" if e.is_base else "delta", e.version) for e in chain.entries]


def test_deltas_come_one_after_the_other() -> None:
    chain = Chain("a", 0).next("b", 1, entry(1)).next("c", 2, entry(2))
    assert versions(chain) == [("delta", 1), ("delta", 2)]
    assert (chain.state_id, chain.rows) == ("c", 2)


def test_a_batch_without_changes_adds_nothing() -> None:
    chain = Chain("a", 0).next("b", 1, entry(1)).next("c", 1, None)
    assert versions(chain) == [("delta", 1)]
    assert chain.state_id == "c"


def test_a_base_takes_the_place_of_all_up_to_its_version() -> None:
    chain = Chain("a", 0)
    for version in range(1, 6):
        chain = chain.next("b", version, entry(version))
    assert versions(chain.next("c", 6, entry(6), entry(4, is_base=True), 4)) == [
        ("base", 4),
        ("delta", 5),
        ("delta", 6),
    ]


def test_a_base_of_the_new_state_stands_alone() -> None:
    chain = Chain("a", 0).next("b", 1, entry(1))
    assert versions(chain.next("c", 2, entry(2), entry(2, is_base=True), 2)) == [("base", 2)]


def test_a_base_without_rows_leaves_the_later_deltas() -> None:
    chain = Chain("a", 0).next("b", 1, entry(1)).next("c", 0, entry(2))
    assert versions(chain.next("d", 1, entry(3), None, 2)) == [("delta", 3)]


def test_a_new_base_replaces_several_that_a_rescale_left() -> None:
    chain = Chain("a", 9, (entry(5, is_base=True), entry(5, is_base=True), entry(6), entry(6)))
    assert chain.base_bytes == 20
    assert versions(chain.next("b", 9, entry(7), entry(6, is_base=True), 6)) == [("base", 6), ("delta", 7)]


def test_the_first_delta_stands_for_a_base() -> None:
    chain = Chain("a", 1, (entry(1, size=100), entry(2, size=7), entry(3, size=8)))
    assert (chain.base_version, chain.base_bytes, chain.deltas, chain.size) == (0, 100, 2, 115)
    chain = Chain("a", 1, (entry(4, is_base=True, size=50), entry(5, size=7, path=None)))
    assert (chain.base_version, chain.base_bytes, chain.deltas, chain.inline_bytes) == (4, 50, 1, 7)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), max_size=30))
def test_whatever_comes_bases_stay_before_deltas_and_versions_ascend(steps: list[tuple[bool, bool, int]]) -> None:
    chain = Chain("a", 0)
    for version, (has_delta, has_base, age) in enumerate(steps, 1):
        base_version = version - age
        base = has_base and base_version > chain.base_version
        chain = chain.next(
            "x",
            0,
            entry(version) if has_delta else None,
            entry(base_version, is_base=True) if base else None,
            base_version if base else 0,
        )
        found = versions(chain)
        assert [kind for kind, _ in found] == sorted(kind for kind, _ in found)
        assert [v for _, v in found] == sorted({v for _, v in found})


@given(st.booleans(), st.lists(st.one_of(st.none(), st.tuples(st.integers(1, 99), st.booleans())), max_size=12))
def test_a_chain_that_grows_has_the_sums_of_one_with_the_same_segments(
    begins_with_base: bool, steps: list[tuple[int, bool] | None]
) -> None:
    chain = Chain("a", 0, (entry(1, is_base=True, size=50),) if begins_with_base else ())
    for version, step in enumerate(steps, 2):
        delta = None if step is None else entry(version, size=step[0], path="shared/x" if step[1] else None)
        chain = chain.next("x", version, delta)
        same = Chain("x", version, chain.entries)
        assert all(getattr(chain, name) == getattr(same, name) for name in Chain.__slots__)


def test_files_and_entries_of_a_table() -> None:
    key = StoreKey(0, "default")
    table = {key: [Chain("a", 1, (entry(1), entry(2, path=None))), Chain("b", 1, (entry(1, path="shared/y"),))]}
    assert files_of(table) == {"shared/x", "shared/y"}
    assert len(list(all_entries(table))) == 3
    assert chain_of(table, SubtaskKey(0, "default", 1)) is table[key][1]
    for missing in (SubtaskKey(0, "default", 2), SubtaskKey(0, "default", -1), SubtaskKey(0, "other", 0)):
        assert chain_of(table, missing) is None


def test_merged_deltas_replace_exactly_those_of_their_versions() -> None:
    chain = Chain("a", 1, (entry(1, is_base=True), *(entry(version) for version in (2, 4, 5, 6))))
    following = chain.next("b", 1, entry(7), merged=entry(5, covers=4))
    assert [(e.first_version, e.version) for e in following.entries] == [(0, 1), (2, 5), (6, 6), (7, 7)]
    again = following.next("c", 1, entry(8), merged=entry(6, covers=5))
    assert [(e.first_version, e.version) for e in again.entries] == [(0, 1), (2, 6), (7, 7), (8, 8)]
    assert (again.deltas, again.bases) == (3, 1)


def test_a_run_has_the_changes_of_its_versions_and_no_others() -> None:
    chain = Chain("a", 1, (entry(1, is_base=True), entry(2), entry(5, covers=3), entry(6)))
    assert chain.run_of(2, 5) == (1, 3)
    assert chain.run_of(3, 6) == (2, 4)
    assert chain.run_of(2, 6) == (1, 4)
    assert [chain.run_of(*versions) for versions in ((2, 4), (4, 6), (1, 5), (6, 7), (9, 9))] == [None] * 5


def test_merged_deltas_that_no_longer_fit_change_nothing() -> None:
    chain = Chain("a", 1, (entry(4, is_base=True), entry(5), entry(6)))
    following = chain.next("b", 1, entry(7), merged=entry(5, covers=3))
    assert [(e.is_base, e.version) for e in following.entries] == [(True, 4), (False, 5), (False, 6), (False, 7)]


def test_a_base_and_merged_deltas_beside_it() -> None:
    chain = Chain("a", 1, (entry(1, is_base=True), entry(2), entry(3), entry(4)))
    following = chain.next("b", 1, entry(5), entry(3, is_base=True), 3, entry(3, covers=2))
    assert [(e.is_base, e.version) for e in following.entries] == [(True, 3), (False, 4), (False, 5)]
