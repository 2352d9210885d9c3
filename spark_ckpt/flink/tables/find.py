"""State of a Flink job at a path or URL."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.flink.tables.catalog import FlinkCatalog, open_flink_state
from spark_ckpt.location.find import CheckpointLocation


def find_flink_state(
    location: str,
    checkpoint_id: int | None = None,
    *,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
) -> FlinkCatalog | None:
    """State of the selected checkpoint or savepoint of a Flink job; None if the location belongs to a query of Spark.

    Args:
        location: the location, as a path or URL.
        checkpoint_id: the checkpoint; by default the newest.
        moved, allow_outside: as in `spark_ckpt.read_state`.

    Raises:
        SparkCkptError: no such checkpoint, or its metadata cannot be read.
    """
    found = CheckpointLocation.open(location).find_of_flink(checkpoint_id)
    return None if found is None else open_flink_state(location, found, moved=moved, allow_outside=allow_outside)
