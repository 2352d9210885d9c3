"""Claims of the runs of one process, for stores without a fence in the storage, and which of these runs have ended."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from spark_ckpt.clock import Clock

_PAUSE = 0.05
_MAX_LOCATIONS = 1000
_MAX_ENDED_RUNS = 1000


@dataclass(frozen=True, slots=True)
class ProcessClaim:
    """Claim of a location by a run.

    Args:
        run_id: id of the run.
        generation: generation of the claim.
    """

    run_id: str
    generation: int


class ProcessClaims:
    """Claims of the runs of one process, by location. Thread-safe.

    A query that restarts in the same driver opens its location before Spark's listener bus reports the end of the
    previous run. From then on that run must delete nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[str, ProcessClaim] = {}
        self._deleting: dict[str, str] = {}
        self._deletions = 0
        self._tried_ids: OrderedDict[str, int] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    @property
    def deletions(self) -> int:
        """Number of deletions so far, in all locations. While it is unchanged, records read before still exist."""
        with self._lock:
            return self._deletions

    def claim(self, location: str, claim: ProcessClaim, clock: Clock) -> None:
        """Registers a claim, as soon as no other run is deleting a record of the location.

        Args:
            location: the claimed location.
            claim: claim of the run.
            clock: clock for pauses.
        """
        while True:
            with self._lock:
                if self._deleting.get(location) in (None, claim.run_id):
                    self._newest[location] = claim
                    return
            clock.sleep(_PAUSE)

    def newer_than(self, location: str, run_id: str) -> ProcessClaim | None:
        """Claim that supersedes the one of a run; None if there is none."""
        with self._lock:
            newest = self._newest.get(location)
            return newest if newest is not None and newest.run_id != run_id else None

    def begin_deleting(self, location: str, run_id: str) -> ProcessClaim | None:
        """Blocks claims of other runs until `end_deleting`.

        Returns:
            None on success; the superseding claim if there is one, which forbids the deletion.
        """
        with self._lock:
            newest = self._newest.get(location)
            if newest is not None and newest.run_id != run_id:
                return newest
            self._deleting[location] = run_id
            return None

    def end_deleting(self, location: str) -> None:
        """Lets other runs claim again."""
        with self._lock:
            self._deleting.pop(location, None)
            self._deletions += 1

    def release(self, location: str, run_id: str) -> None:
        """Removes the claim of an ended run, unless another run has superseded it."""
        with self._lock:
            newest = self._newest.get(location)
            if newest is not None and newest.run_id == run_id:
                del self._newest[location]

    def tried(self, location: str, checkpoint_id: int) -> None:
        """Notes an id that names files: requests to delete them may still arrive after the next run has claimed."""
        with self._lock:
            self._tried_ids[location] = max(checkpoint_id, self._tried_ids.pop(location, 0))
            while len(self._tried_ids) > _MAX_LOCATIONS:
                self._tried_ids.popitem(last=False)

    def free_id(self, location: str) -> int:
        """Id above all ids that runs of this process have tried, as far as the process remembers."""
        with self._lock:
            return 1 + self._tried_ids.get(location, 0)

    def end(self, run_id: str) -> None:
        """Notes that a run has ended: its query writes nothing any more."""
        with self._lock:
            self._ended[run_id] = None
            while len(self._ended) > _MAX_ENDED_RUNS:
                self._ended.popitem(last=False)

    def has_ended(self, run_id: str) -> bool:
        """True if a run of this process has ended, as far as the process remembers."""
        with self._lock:
            return run_id in self._ended
