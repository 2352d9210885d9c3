from __future__ import annotations

from dataclasses import replace
from typing import Any

from spark_ckpt import metadata as m
from spark_ckpt.metadata.traversal import parts_of, with_parts

STREAM = m.FileStateHandle("/f", 3)
HANDLE = m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(0, [0]), STREAM)
BEHIND_NOTHING = m.ChangelogStateBackendHandle((None, HANDLE), (), m.KeyGroupRange(0, 0), 0, 0, "id")


def test_parts_behind_an_absent_one_are_found_and_changed() -> None:
    def moved(part: Any) -> Any:
        return replace(part, file_path="/g") if isinstance(part, m.FileStateHandle) else part

    assert STREAM in parts_of(BEHIND_NOTHING)
    changed = replace(HANDLE, delegate_state_handle=replace(STREAM, file_path="/g"))
    assert with_parts(BEHIND_NOTHING, moved) == replace(BEHIND_NOTHING, materialized_state_handles=(None, changed))
