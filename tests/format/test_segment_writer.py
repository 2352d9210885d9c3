"""Base segments written in Python, beside an independent description of the layout."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.format import segment_writer
from spark_ckpt.format.segment_writer import KeyGroupTooLargeError, NewSection, encode_base, list_value
from spark_ckpt.format.segments import Section, SegmentKind, decode_block
from tests.support.segments import encode_segment

rows = st.binary(max_size=40)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@st.composite
def sections(draw: st.DrawFn) -> Section:
    lists = draw(st.booleans())
    values = st.lists(rows, max_size=4).map(tuple) if lists else rows
    entries: dict[bytes, Any] = draw(st.dictionaries(rows, values, min_size=1, max_size=6))
    return Section(tuple(entries.items()), draw(names), lists)


groups = st.dictionaries(st.integers(0, 32767), st.lists(sections(), min_size=1, max_size=3), max_size=4)


def written(section: Section) -> NewSection:
    values = [list_value(value) if isinstance(value, tuple) else value or b"" for _, value in section.entries]
    return NewSection(section.column_family, [key for key, _ in section.entries], values, section.lists)


@given(groups, st.integers(0, 2**63 - 1))
def test_blocks_are_read_as_they_were_written(groups: dict[int, list[Section]], version: int) -> None:
    ordered = dict(sorted(groups.items()))
    segment = encode_base(version, [(group, [*map(written, each)]) for group, each in ordered.items()])
    expected = encode_segment(SegmentKind.BASE, version, groups)
    assert segment.key_groups.tolist() == expected.key_groups.tolist() == list(ordered)
    assert segment.rows == expected.rows
    for group, offset in zip(segment.key_groups.tolist(), segment.offsets.tolist(), strict=True):
        block = decode_block(segment.data, offset, "file")
        assert (block.kind, block.key_group, block.version) == (SegmentKind.BASE, group, version)
        assert list(block.sections) == ordered[group]


def test_several_keys_of_no_bytes_have_lengths() -> None:
    """Else a damaged count of entries would allocate memory for rows that take no bytes."""
    section = NewSection("", [b""], [b"value"])
    (block,) = [decode_block(encode_base(1, [(0, [section])]).data, 0, "file")]
    assert block.sections[0].entries == ((b"", b"value"),)


def test_a_key_group_that_fits_into_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "MAX_BODY_BYTES", 30)
    with pytest.raises(KeyGroupTooLargeError, match="larger maxParallelism") as refused:
        encode_base(1, [(7, [NewSection("", [b"key"], [bytes(30)])])])
    assert refused.value.key_group == 7
    assert refused.value.size > 30
