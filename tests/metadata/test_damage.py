"""Damaged files: an error that names the place, whatever the damage, and never an allocation of what a count claims."""

from __future__ import annotations

import resource
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.metadata import CheckpointMetadata, MetadataFormatError, dumps, loads
from tests.metadata.corpus import FLINK, MUTANTS, Vector

SMALL = [vector for vector in (*FLINK, *MUTANTS) if vector.loads and len(vector.content) <= 2400]


def read(content: bytes) -> CheckpointMetadata | None:
    """The metadata, or None if it is refused in the way in which everything must be refused."""
    try:
        return loads(content)
    except MetadataFormatError as error:
        refused = error
    assert 0 <= refused.offset <= len(content)
    assert refused.field
    return None


@pytest.mark.parametrize("vector", SMALL, ids=str)
def test_truncated_at_every_byte(vector: Vector) -> None:
    content = vector.content
    needed = vector.dump["bytesConsumed"]
    for length in range(needed):
        assert read(content[:length]) is None, length
    assert read(content[:needed]) is not None


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(SMALL), st.data())
def test_flipped_bits(vector: Vector, data: st.DataObject) -> None:
    content = bytearray(vector.content)
    for bit in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=1, max_size=3)):
        content[bit // 8] ^= 1 << bit % 8
    if (metadata := read(bytes(content))) is not None:
        # Whatever still reads can be written, and reads the same again.
        assert loads(dumps(metadata, metadata.version)) == metadata


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(SMALL), st.data())
def test_wild_counts(vector: Vector, data: st.DataObject) -> None:
    content = bytearray(vector.content)
    at = data.draw(st.integers(8, len(content) - 4))
    struct.pack_into(">i", content, at, data.draw(st.sampled_from([2**31 - 1, -(2**31), 2**24, -1, 2**31 - 8])))
    read(bytes(content))


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 4), st.binary(max_size=200))
def test_noise_behind_the_header(version: int, noise: bytes) -> None:
    read(struct.pack(">ii", 0x4960672D, version) + noise)


def test_wild_counts_allocate_nothing() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for vector in SMALL:
        content = vector.content
        for at in range(8, len(content) - 4, 5):
            read(content[:at] + b"\x7f\xff\xff\xf0" + content[at + 4 :])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024  # KiB


def test_nesting_is_bounded() -> None:
    # A key-groups handle whose stream is a key-groups handle whose stream ...
    head = struct.pack(">iiqii16sii", 0x4960672D, 3, 1, 0, 1, bytes(16), 1, 128)
    subtask = struct.pack(">biiii", 0, 1, 0, 0, 0)
    with pytest.raises(MetadataFormatError, match="within one another"):
        loads(head + subtask + struct.pack(">bii", 3, 0, 0) * 100_000)


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
        "s3://bucket/chk-1/_metadata: unknown code 99 of a keyed state handle "
        "(byte 65, operator_states[0].subtask_states[0].managed_keyed_state.code)"
    )
