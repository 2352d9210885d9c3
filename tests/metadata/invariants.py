"""Invariants of reading metadata, damaged or not."""

from __future__ import annotations

from spark_ckpt.metadata import CheckpointMetadata, MetadataFormatError, dumps, loads
from tests.support.memory import traced_peak

TIMES_ITS_SIZE = 32
AND_BYTES = 32 * 1024
"""Memory limit of reading a file: multiple of its size, plus a constant. Finished subtasks (4 bytes) need the most."""


def read(content: bytes) -> CheckpointMetadata | None:
    """Metadata, or None if it is refused with an error that has a valid offset and a field."""
    try:
        return loads(content)
    except MetadataFormatError as error:
        refused = error
    assert 0 <= refused.offset <= len(content)
    assert refused.field
    return None


def judge(content: bytes) -> CheckpointMetadata | None:
    """Reads metadata and, if that succeeds, asserts that writing it and reading it again yields the same."""
    if (metadata := read(content)) is not None:
        assert loads(dumps(metadata, metadata.version)) == metadata
    return metadata


def judge_memory(content: bytes) -> None:
    """Asserts that reading takes at most a small multiple of the file's size in memory."""
    read(b"")  # exclude the imports of a first error
    peak = traced_peak(lambda: read(content))
    assert peak <= TIMES_ITS_SIZE * len(content) + AND_BYTES
