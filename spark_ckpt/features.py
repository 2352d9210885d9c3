"""Features of our formats that a reader has to understand (docs/format-policy.md)."""

from __future__ import annotations

from enum import Enum

from spark_ckpt.errors import UnsupportedFormatError


class Feature(str, Enum):
    """A use of a format that a release without support for it would misread.

    What has one names it in its JSON field `features`. Fields that a reader may ignore need no feature.
    """

    SEEN_RECORDS = "seen-records"
    """In a claim: records below it count only if its field `seen` has their ids. A reader that ignores it takes a
    record of a fenced driver for a completed checkpoint."""
    EVOLVED_SCHEMAS = "evolved-schemas"
    """In a checkpoint's record: checkpoints from before an evolution of the query have other schemas than Spark's files
    (`ckpt/evolved`). A reader that ignores it reads their rows as those of another type."""
    PARTITION_FILTERS = "partition-filters"
    """In `spark-batch`: rows of a segment count only if they pass its filters. A reader that ignores them counts a row
    once for each subtask that shares the segment."""
    SHARED_HANDLES = "shared-handles"
    """In `spark-batch`: a subtask reads segments whose handle another subtask has. A reader that ignores it finds no
    state there."""
    MERGED_DELTAS = "merged-deltas"
    """In `spark-batch`: a delta has the changes of several versions. A reader that ignores it takes them for those of
    the last one, in the change feed and where it replays batches."""

    COMPRESSED_BLOCKS = "compressed-blocks"
    """In `spark-batch`: a segment has blocks with a compressed body. A reader that lacks the codec stops in the middle
    of a load, instead of at `_metadata`."""


def check_features(path: str, names: object) -> None:
    """Check that this release knows the features that a file needs.

    Args:
        path: name of the file, for the error.
        names: its field `features`, None if it has none.

    Raises:
        UnsupportedFormatError: a feature is unknown.
        ValueError: it is not a list of names.
    """
    if names is None:
        return
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"features {names!r}")
    known = {feature.value for feature in Feature}
    if unknown := [name for name in names if name not in known]:
        raise UnsupportedFormatError(path, f"the features {', '.join(unknown)}", tuple(unknown))
