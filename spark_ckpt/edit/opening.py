"""A stopped query whose state is about to be changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.edit.errors import EditRefusedError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.change import Change, begin_change
from spark_ckpt.state.catalog import StateCatalog, open_state


@contextmanager
def begin_edit(
    location: str | os.PathLike[str],
    operation: str,
    *,
    settings: Mapping[str, str] | None,
    force: bool,
    dry_run: bool,
    clock: Clock | None,
) -> Iterator[tuple[Change, StateCatalog]]:
    """A change of a stopped query's state; see `begin_change`.

    Yields:
        The change, and the state that it starts from.

    Raises:
        EditRefusedError: a batch is not committed, or another operation has not finished.
        SparkCkptError: as `begin_change` and `open_state` raise.
    """
    path, clock = os.fspath(location), clock or SystemClock()
    storage = CheckpointLocation.open(path).of_query()

    def refuse(reason: str) -> EditRefusedError:
        return EditRefusedError(storage.location, reason)

    with begin_change(
        storage, operation, refuse, settings=settings, force=force, dry_run=dry_run, clock=clock
    ) as change:
        yield change, open_state(path, change.record.id)
