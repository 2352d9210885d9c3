"""Selection of a checkpoint by its id, its tag, or a time."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from spark_ckpt.figures import time_ms
from spark_ckpt.location.errors import NoCheckpointAtTimeError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.tags import Tags

Selection: TypeAlias = "int | str | datetime | None"
"""Id of a checkpoint, name of its tag, or a time, for the newest checkpoint that was complete then. A time without a
time zone is in UTC. None: the newest checkpoint."""


def selected_id(location: CheckpointLocation, selection: Selection) -> int | None:
    """Id of the selected checkpoint; None for the newest.

    Args:
        location: a location. Only that of a query has tags.
        selection: the selection. Among checkpoints of one time, tags count as well.

    Raises:
        TagNameError, TagNotFoundError: no checkpoint has this tag.
        NoCheckpointAtTimeError: no checkpoint that still exists was complete at this time.
        ForeignLocationError: a tag or a time, and the location is not that of a query.
        DamagedRecordError, StorageError: the location cannot be read.
    """
    if isinstance(selection, str):
        return Tags(location.of_query()).find(selection).checkpoint_id
    if not isinstance(selection, datetime):
        return selection
    until_ms = time_ms(selection)
    tagged = {} if location.is_savepoint else Tags(location.of_query()).records()
    there = tagged | {record.id: record for record in location.checkpoints()}
    complete = [record for record in there.values() if record.timestamp_ms <= until_ms]
    if not complete:
        first_ms = min((record.timestamp_ms for record in there.values()), default=None)
        raise NoCheckpointAtTimeError(location.path, until_ms, first_ms)
    return max(complete, key=lambda record: record.id).id
