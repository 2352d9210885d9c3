"""Our verdict on damaged and handmade files, and the content that we read from them, match Flink's loader."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.metadata.codes import code_of
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.handle_encoder import write_keyed_state_handle, write_operator_state_handle, write_stream
from tests.metadata import examples
from tests.metadata.corpus import FLINK
from tests.metadata.deviations import DEVIATIONS, outcomes, unexplained
from tests.metadata.mutations import mutated, seeds
from tests.support.flink_check import class_path

MUTATED_DOCUMENTS = 4000
PATHS = 1000


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Builds the check before the first test starts its timer."""
    class_path()


def test_damaged_files(tmp_path: Path, rng: random.Random) -> None:
    undamaged = seeds()
    found = outcomes(tmp_path, (mutated(rng, rng.choice(undamaged), undamaged) for _ in range(MUTATED_DOCUMENTS)))
    for outcome in found:
        assert not (differences := unexplained(outcome)), f"{differences} in {outcome.content.hex()}"
    verdicts = Counter(outcome.flink.loads for outcome in found)
    assert verdicts[True] > MUTATED_DOCUMENTS / 10
    assert verdicts[False] > MUTATED_DOCUMENTS / 3


# ---- absent handles --------------------------------------------------------------------------------------------------


def encoded(write: Callable[[DataOutput, Any, str], None], handle: object) -> bytes:
    out = DataOutput()
    write(out, handle, "handle")
    return out.getvalue()


def with_nothing_at(position: str) -> bytes:
    """File with code 0 in place of another code at a position."""
    code, handle = next((code, handle) for code, handle in examples.POSITIONS[position].items() if code)
    (metadata,) = (
        metadata
        for metadata, where in zip(examples.everywhere(3), sorted(examples.positions(3)), strict=True)
        if where == (position, code)
    )
    if code_of(handle) in examples.OPERATOR:
        write: Callable[[DataOutput, Any, str], None] = write_operator_state_handle
    elif code_of(handle) in examples.KEYED and position.endswith(("keyed_state", "state_handles")):
        write = write_keyed_state_handle
    else:
        write = write_stream
    content = m.dumps(metadata)
    assert encoded(write, handle) in content
    return content.replace(encoded(write, handle), b"\0")


LOADED_WITHOUT = {
    "OperatorState.coordinator_state",
    "OperatorSubtaskState.managed_keyed_state",
    "OperatorSubtaskState.raw_keyed_state",
    "IncrementalRemoteKeyedStateHandle.meta_data_state_handle",
    "HandleAndOffset.handle",
    "ChangelogStateBackendHandle.materialized_state_handles",
}
"""Positions where a handle may be absent. Operator state may be absent, too, but then has a separate flag in front."""


def test_absent_handles(tmp_path: Path) -> None:
    found = dict(zip(examples.POSITIONS, outcomes(tmp_path, map(with_nothing_at, examples.POSITIONS)), strict=True))
    assert {position for position, outcome in found.items() if outcome.flink.loads} == LOADED_WITHOUT
    for position, outcome in found.items():
        assert not outcome.differences(), position
        if isinstance(outcome.ours, m.CheckpointMetadata):
            assert m.dumps(outcome.ours) == outcome.content
            assert (position, 0) in examples.positions_in(outcome.ours)


# ---- key-group numbers and path texts --------------------------------------------------------------------------------


def test_ranges_of_any_numbers(tmp_path: Path) -> None:
    numbers = (-(2**31), -(2**31) + 1, -5, -1, 0, 1, 2, 5, 2**31 - 2, 2**31 - 1)
    handles = [examples.KEYED[code] for code in (5, 7, 9, 10, 11, 12, 13, 14)]
    contents = []
    for handle in handles:
        content = m.dumps(examples.keyed(replace(handle, **_with_range(handle))))
        at = content.index(bytes.fromhex("0123456700000001"))
        for start in numbers:
            for number in numbers:
                both = start.to_bytes(4, "big", signed=True) + number.to_bytes(4, "big", signed=True)
                contents.append(content[:at] + both + content[at + 8 :])
    found = outcomes(tmp_path, contents)
    for outcome in found:
        assert not (differences := unexplained(outcome)), f"{differences} in {outcome.content.hex()}"
    assert {outcome.flink.loads for outcome in found} == {True, False}


def _with_range(handle: Any) -> dict[str, Any]:
    if isinstance(handle, (m.KeyGroupsStateHandle, m.KeyGroupsSavepointStateHandle)):
        return {"group_range_offsets": m.KeyGroupRangeOffsets.of(0x01234567, [0])}
    return {"key_group_range": m.KeyGroupRange(0x01234567, 0x01234567)}


def with_path(text: str, *, relative: bool) -> bytes:
    """File with any text as a path, even one that the model refuses."""
    placeholder = "placeholder" if relative else "/placeholder"
    stream = m.RelativeFileStateHandle(placeholder, 1) if relative else m.FileStateHandle(placeholder, 1)
    content = m.dumps(examples.keyed(m.KeyGroupsSavepointStateHandle(examples.OFFSETS, stream)))
    old, new = (encoded(DataOutput.utf, path) for path in (placeholder, text))
    assert content.count(old) == 1
    return content.replace(old, new)


PIECES = [*"aZ1:/\\.?#[]@%* -\0\x85é\u2028+~", "//", "..", "[::1]", "%41", "s3:", "file:", "C:", "h@[fe80::1%eth0]:80"]


def test_texts_for_paths(tmp_path: Path, rng: random.Random) -> None:
    texts = ["".join(rng.choices(PIECES, k=rng.randint(0, 7))) for _ in range(PATHS)]
    found = outcomes(tmp_path, (with_path(text, relative=rng.random() < 0.3) for text in texts))
    for text, outcome in zip(texts, found, strict=True):
        assert not (differences := unexplained(outcome)), f"{differences} for {text!r}"
    verdicts = Counter(outcome.flink.loads for outcome in found)
    assert min(verdicts[True], verdicts[False]) > PATHS / 10


# ---- deviations ------------------------------------------------------------------------------------------------------

_HIGHEST = m.OperatorState(bytes(16), 2**31 - 1, 2**31 - 1, {0: m.OperatorSubtaskState()})
_PROPERTIES = next(vector.content for vector in FLINK if vector.version == 4)


def nested(depth: int) -> bytes:
    """File with nested handles, built by hand because the writer limits the depth to that of the reader."""
    stream = examples.STREAMS[3]
    once = encoded(write_stream, stream)
    inline = encoded(write_stream, examples.INLINE)
    content = m.dumps(examples.keyed(m.KeyGroupsSavepointStateHandle(examples.OFFSETS, stream)))
    return content.replace(once, once.removesuffix(inline) * depth + inline)


EXAMPLES_OF_DEVIATIONS: dict[str, bytes] = {
    "memory": m.dumps(m.CheckpointMetadata(1, (), (_HIGHEST,))),
    "nesting": nested(100),
    "properties": _PROPERTIES.replace(b"java.lang.Enum", b"java.lang.Fnum"),
    "cut path": with_path("a?b:/c", relative=False),
    "zone": with_path("//user@[fe80::1%eth0]/c", relative=False),
    "absolute relative path": with_path("/./", relative=True),
}


def test_deviations(tmp_path: Path) -> None:
    found = dict(zip(EXAMPLES_OF_DEVIATIONS, outcomes(tmp_path, EXAMPLES_OF_DEVIATIONS.values()), strict=True))
    assert found.keys() == DEVIATIONS.keys()
    for name, outcome in found.items():
        assert outcome.differences(), f"{name} is no deviation any more"
        assert [other for other in DEVIATIONS if DEVIATIONS[other].explains(outcome)] == [name]
