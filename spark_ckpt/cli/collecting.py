"""The result of `spark-ckpt gc`, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_ckpt.cli.summary import count, human_size, iso_time, plain
from spark_ckpt.coordinator.collection import Collection


def describe_collection(collection: Collection) -> dict[str, Any]:
    """`{"location", "dry_run", "bytes", "orphans", "failed"}`.

    An orphan has "path" (relative to `ckpt`), "size" and "modified" (ISO 8601, or null); one that could not be deleted
    is named again in "failed", with "path" and "reason".
    """
    orphans = [
        {
            "path": orphan.path,
            "size": orphan.size,
            "modified": None if orphan.modified_ms is None else iso_time(orphan.modified_ms),
        }
        for orphan in collection.orphans
    ]
    return {
        "location": collection.location,
        "dry_run": collection.dry_run,
        "bytes": collection.size,
        "orphans": orphans,
        "failed": [{"path": path, "reason": reason} for path, reason in collection.failed],
    }


def collection_lines(collection: Collection) -> Iterator[str]:
    """A line for each orphan, and one that sums up."""
    for orphan in collection.orphans:
        name = f"{orphan.path}/" if orphan.is_directory else orphan.path
        yield f"{plain(name)}  {human_size(orphan.size)}"
    deleted = len(collection.orphans) - len(collection.failed)
    did = "would be deleted" if collection.dry_run else f"{deleted:,} deleted"
    yield f"{count(len(collection.orphans), 'orphan')}, {human_size(collection.size)}; {did}"
