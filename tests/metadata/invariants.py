"""What must be true of whatever is read as metadata, damaged or not."""

from __future__ import annotations

from spark_ckpt.metadata import CheckpointMetadata, MetadataFormatError, dumps, loads
from tests.support.memory import traced_peak

TIMES_ITS_SIZE = 32
AND_BYTES = 32 * 1024
"""What reading a file may take of memory. Finished subtasks, of four bytes each, take the most for their size."""


def read(content: bytes) -> CheckpointMetadata | None:
    """The metadata, or None if it is refused in the way in which everything must be."""
    try:
        return loads(content)
    except MetadataFormatError as error:
        refused = error
    assert 0 <= refused.offset <= len(content)
    assert refused.field
    return None


def judge(content: bytes) -> CheckpointMetadata | None:
    """Reads it, and asserts that whatever still reads can be written, and reads the same again."""
    if (metadata := read(content)) is not None:
        assert loads(dumps(metadata, metadata.version)) == metadata
    return metadata


def judge_memory(content: bytes) -> None:
    """Asserts that reading takes no more than a small multiple of the file's size."""
    read(b"")  # nobody answers for what a first error imports
    peak = traced_peak(lambda: read(content))
    assert peak <= TIMES_ITS_SIZE * len(content) + AND_BYTES
