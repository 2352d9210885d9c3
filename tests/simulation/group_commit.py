"""One file for large segments of an executor's tasks that commit at about the same time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_ckpt.format.segment_ref import SegmentRef
from tests.support.segments import placed

if TYPE_CHECKING:
    from tests.simulation.executor import Executor

_POLL_SECONDS = 0.01
_MAX_WAIT_SECONDS = 0.3


@dataclass
class _File:
    segments: list[SegmentRef] = field(default_factory=list)
    path: str | None = None
    failed: bool = False


class GroupCommit:
    """The files that one executor is about to write.

    Args:
        executor: the executor.
        write: writes a file and returns its name.
    """

    def __init__(self, executor: Executor, write: Callable[[str, bytes], str]) -> None:
        self._executor, self._write = executor, write
        self._open: dict[Hashable, _File] = {}

    def ship(self, stage: Hashable, segment: SegmentRef) -> SegmentRef | None:
        """Writes a segment together with others of the same stage attempt; None if the file's writer failed."""
        scheduler = self._executor.world.scheduler
        file = self._open.get(stage)
        leads = file is None
        if file is None:
            file = self._open[stage] = _File()
        start = sum(joined.size for joined in file.segments)
        file.segments.append(segment)
        if leads:
            try:
                scheduler.sleep(self._executor.rng.random() * _MAX_WAIT_SECONDS)
                del self._open[stage]
                file.path = self._write("deltas", b"".join(joined.data for joined in file.segments))
            finally:
                self._open = {key: other for key, other in self._open.items() if other is not file}
                file.failed = file.path is None
        while file.path is None and not file.failed:
            scheduler.sleep(_POLL_SECONDS)
        if file.path is None:
            return None
        if len(file.segments) == 1:
            return placed(segment, file.path)
        self._executor.world.count("file of several tasks")
        size = sum(joined.size for joined in file.segments)
        return placed(segment, file.path, start, size)
