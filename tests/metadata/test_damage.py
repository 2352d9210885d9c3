"""Damaged files lead to an error with the place of the damage; a wrong count never causes a large allocation."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt import metadata as m
from spark_ckpt.metadata import MetadataFormatError, loads
from tests.metadata.corpus import FLINK, MUTANTS, Vector
from tests.metadata.invariants import judge, judge_memory, read
from tests.metadata.mutations import mutated, seeds

SMALL = [vector for vector in (*FLINK, *MUTANTS) if vector.loads and len(vector.content) <= 2400]
EACH_FOURTH = [pytest.param(v, marks=[pytest.mark.long] if n % 4 else []) for n, v in enumerate(SMALL)]


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_truncated_at_every_byte(vector: Vector) -> None:
    content = vector.content
    needed = vector.dump["bytesConsumed"]
    for length in range(needed):
        assert read(content[:length]) is None, length
    assert read(content[:needed]) is not None


@pytest.mark.parametrize("vector", EACH_FOURTH, ids=str)
def test_every_flipped_bit(vector: Vector) -> None:
    content = bytearray(vector.content)
    read_all_the_same = 0
    for bit in range(len(content) * 8):
        content[bit // 8] ^= 1 << bit % 8
        # Writes the metadata again for one bit in five, because that takes as long as four reads.
        read_all_the_same += (read if bit % 5 else judge)(bytes(content)) is not None
        content[bit // 8] ^= 1 << bit % 8
    assert 0 < read_all_the_same < len(content) * 8


@settings(max_examples=400)
@given(st.sampled_from(SMALL), st.data())
def test_flipped_bits(vector: Vector, data: st.DataObject) -> None:
    content = bytearray(vector.content)
    for bit in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=2, max_size=3)):
        content[bit // 8] ^= 1 << bit % 8
    judge(bytes(content))


@settings(max_examples=600)
@given(st.sampled_from(SMALL), st.data())
def test_wild_counts(vector: Vector, data: st.DataObject) -> None:
    content = bytearray(vector.content)
    at = data.draw(st.integers(8, len(content) - 4))
    struct.pack_into(">i", content, at, data.draw(st.sampled_from([2**31 - 1, -(2**31), 2**24, -1, 2**31 - 8])))
    read(bytes(content))


@settings(max_examples=300)
@given(st.integers(2, 4), st.binary(max_size=200))
def test_noise_behind_the_header(version: int, noise: bytes) -> None:
    read(struct.pack(">ii", 0x4960672D, version) + noise)


def test_wild_counts_allocate_nothing() -> None:
    for vector in SMALL:
        content = vector.content
        for at in range(8, len(content) - 4, 11):
            judge_memory(content[:at] + b"\x7f\xff\xff\xf0" + content[at + 4 :])


def test_damage_of_any_kind_takes_little_memory(rng: random.Random) -> None:
    undamaged = seeds()
    for _ in range(2000):
        judge_memory(mutated(rng, rng.choice(undamaged), undamaged))


@pytest.mark.parametrize(
    "subtask", [m.FinishedOperatorSubtaskState(), m.OperatorSubtaskState()], ids=["4 bytes", "22 bytes"]
)
def test_subtasks_of_a_few_bytes_take_little_memory(subtask: m.OperatorSubtaskState) -> None:
    subtasks = dict.fromkeys(range(30_000), subtask)
    judge_memory(m.dumps(m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 30_000, 32_768, subtasks),))))


def test_nesting_is_bounded() -> None:
    # A key-groups handle within a key-groups handle within ...
    head = struct.pack(">iiqii16sii", 0x4960672D, 3, 1, 0, 1, bytes(16), 1, 128)
    subtask = struct.pack(">biiii", 0, 1, 0, 0, 0)
    with pytest.raises(MetadataFormatError, match="nest deeper"):
        loads(head + subtask + struct.pack(">bii", 3, 0, 0) * 100_000)


def test_an_empty_file() -> None:
    with pytest.raises(MetadataFormatError, match="not checkpoint metadata: the file is empty"):
        loads(b"")


def test_errors_name_the_file_the_place_and_the_field() -> None:
    content = bytearray(next(vector for vector in MUTANTS if vector.directory.name == "keyed-code-3").content)
    content[65] = 99
    with pytest.raises(MetadataFormatError) as refused:
        loads(bytes(content), "s3://bucket/chk-1/_metadata")
    error = refused.value
    assert error.path == "s3://bucket/chk-1/_metadata"
    assert error.offset == 65
    assert error.field == "operator_states[0].subtask_states[0].managed_keyed_state.code"
    assert str(error) == (
        "s3://bucket/chk-1/_metadata: unknown keyed state handle code 99 "
        "(byte 65, operator_states[0].subtask_states[0].managed_keyed_state.code)"
    )
