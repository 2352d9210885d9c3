from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from spark_ckpt.checkpoint.encode import encode_entry
from spark_ckpt.format.segment_ref import Blocks, SegmentRef

BLOCKS = Blocks(np.array([1, 2], np.uint32), np.array([0, 50]))

CHANGES: dict[str, Any] = {
    "blocks": Blocks(np.array([1, 3], np.uint32), np.array([0, 51])),
    "path": "shared/other",
    "file_size": 101,
}
"""Different value for each field of a segment's handle."""


def entry(**changes: Any) -> SegmentRef:
    made: dict[str, Any] = {
        "first_version": 3,
        "version": 3,
        "blocks": BLOCKS,
        "size": 100,
        "path": "shared/x",
        "file_size": 100,
    }
    return SegmentRef(**made | changes)


def test_a_handle_is_encoded_once() -> None:
    segment = entry()
    assert segment.encoded is None
    assert encode_entry(segment) == segment.encoded


def test_an_inline_segment_keeps_no_second_copy_of_its_bytes() -> None:
    segment = entry(path=None, blocks=Blocks(np.array([1], np.uint32), np.array([0]), b"x" * 100))
    assert b"x" * 100 in encode_entry(segment)
    assert segment.encoded is None


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_copy_has_a_handle_of_its_own(name: str) -> None:
    segment = entry()
    before = encode_entry(segment)
    changed = replace(segment, **{name: CHANGES[name]})
    assert changed.encoded is None
    assert encode_entry(changed) == encode_entry(entry(**{name: CHANGES[name]})) != before
    assert segment.encoded == before


def test_no_copy_is_made_with_the_handle_of_another() -> None:
    assert "encoded" not in [field.name for field in fields(SegmentRef)]
    with pytest.raises(TypeError):
        replace(entry(), encoded=b"")  # type: ignore[call-arg]


def test_a_segment_that_moves_to_a_file_has_a_new_handle() -> None:
    segment = entry()
    before = encode_entry(segment)
    segment.place_in("shared/merged", 1000, 7)
    moved = {"path": "shared/merged", "file_size": 1000, "blocks": Blocks(BLOCKS.key_groups, BLOCKS.offsets + 7)}
    assert segment.encoded is None
    assert encode_entry(segment) == encode_entry(entry(**moved)) != before
