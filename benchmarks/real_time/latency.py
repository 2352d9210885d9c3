"""Latencies of rows: pairing of sent rows with records of the output, batch boundaries, percentiles."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Sent:
    """A row of the input.

    Args:
        key: the key.
        number: number of the row, ascending over all keys.
        sent: time of sending, in ms since 1970.
    """

    key: int
    number: int
    sent: int


@dataclass(frozen=True)
class Output:
    """A record of the output.

    Args:
        key: the key.
        number: highest number of the rows in it.
        rows: count of the rows in it.
        written: time at which Spark's sink gave it to its producer (Kafka's CreateTime), in ms since 1970.
    """

    key: int
    number: int
    rows: int
    written: int


class LostRowError(RuntimeError):
    """The output lacks rows, has rows twice, or has wrong counts."""


def pair_counts(sent: Iterable[Sent], outputs: Iterable[Output]) -> dict[int, int]:
    """Time of the first output that counts each row, by number; rows without one are missing.

    An output counts all rows of its key up to its number, so one output may be that of several rows.

    Raises:
        LostRowError: a count differs from the number of the rows, or a record is there twice.
    """
    waiting: dict[int, deque[int]] = defaultdict(deque)
    for row in sent:
        waiting[row.key].append(row.number)
    counted: dict[int, int] = defaultdict(int)
    written: dict[int, int] = {}
    for output in outputs:
        numbers = waiting[output.key]
        before = counted[output.key]
        while numbers and numbers[0] <= output.number:
            written[numbers.popleft()] = output.written
            counted[output.key] += 1
        if output.rows != counted[output.key] or counted[output.key] == before:
            raise LostRowError(f"{output} after {before} rows of the key; sent are {counted[output.key]} up to it")
    return written


def pair_unique(sent: Iterable[Sent], outputs: Iterable[Output]) -> dict[int, int]:
    """Time of the output of each row, by number; rows without one are missing.

    Raises:
        LostRowError: a row has two outputs, or was not sent.
    """
    known = {row.number for row in sent}
    written: dict[int, int] = {}
    for output in outputs:
        if output.number in written or output.number not in known:
            raise LostRowError(f"{output} is there twice, or was not sent")
        written[output.number] = output.written
    return written


@dataclass(frozen=True)
class Batch:
    """A batch in real-time mode, from Spark's progress report; times in ms since 1970.

    Args:
        planned: end of the planning: the beginning of `addBatch`, before the tasks start.
        ended: time of its commit.
        rows: rows of state after it.
    """

    planned: float
    ended: float
    rows: int

    @classmethod
    def of(cls, progress: Mapping[str, Any]) -> Batch:
        """Parses the JSON of Spark's `StreamingQueryProgress`.

        In real-time mode `walCommit` comes after `addBatch` (`MicroBatchExecution.markMicroBatchEnd`), before
        `commitOffsets`, the last step.
        """
        took = progress["durationMs"]
        began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp() * 1000
        ended = began + took["triggerExecution"]
        planned = ended - took["commitOffsets"] - took["walCommit"] - took["addBatch"]
        return cls(planned, ended, sum(operator["numRowsTotal"] for operator in progress["stateOperators"]))


@dataclass(frozen=True)
class Pause:
    """Time between two batches without output; times in ms since 1970.

    Args:
        began: end of the interval of the batch before: its tasks read no further row.
        committed: commit of that batch.
        ended: first output of the batch after.
    """

    began: float
    committed: float
    ended: float


def pauses(batches: Iterable[Batch], interval_ms: float, written: Iterable[float]) -> list[Pause]:
    """Pauses between consecutive batches.

    Args:
        batches: the batches, in order.
        interval_ms: length of a batch. Spark counts it from the creation of the readers at the beginning of `addBatch`
            (`RealTimeStreamScanExec.readerFactory`); the few ms between are part of the pause here.
        written: times of the outputs, in any order.
    """
    times, found = sorted(written), []
    for before, after in pairwise(batches):
        place = bisect_left(times, after.planned)
        if place < len(times):
            found.append(Pause(before.planned + interval_ms, before.ended, times[place]))
    return found


def samples_of(
    sent: Iterable[Sent], written: Mapping[int, int], breaks: Sequence[Pause], first: int
) -> dict[str, list[float]]:
    """Samples of the measures `latency_ms`, `within_ms`, `boundary_ms`, `pause_ms` and `end_ms`.

    Args:
        sent: all rows.
        written: time of the output of each row, by number.
        breaks: the pauses, in order.
        first: number of the first measured row. Earlier rows and pauses are the warm-up.

    Raises:
        LostRowError: a row has no output.
    """
    measured = [row for row in sent if row.number >= first]
    lost = [row.number for row in sent if row.number not in written]
    if lost or not measured:
        raise LostRowError(f"{len(lost)} rows have no output, such as {lost[:5]}; {len(measured)} are measured")
    counted = [one for one in breaks if measured[0].sent <= one.began <= measured[-1].sent]
    begins = [one.began for one in breaks]
    samples: dict[str, list[float]] = {"latency_ms": [], "within_ms": [], "boundary_ms": []}
    for row in measured:
        place = bisect_right(begins, row.sent) - 1
        is_at_boundary = place >= 0 and row.sent <= breaks[place].ended
        latency = float(written[row.number] - row.sent)
        samples["latency_ms"].append(latency)
        samples["boundary_ms" if is_at_boundary else "within_ms"].append(latency)
    samples["pause_ms"] = [one.ended - one.began for one in counted]
    samples["end_ms"] = [one.committed - one.began for one in counted]
    return samples


def percentile(samples: Collection[float], share: float) -> float:
    """Smallest sample that at least this share of the samples does not exceed (nearest rank).

    Args:
        samples: at least one.
        share: from 0 to 1.

    Raises:
        ValueError: there are no samples.
    """
    if not samples:
        raise ValueError("no samples")
    return sorted(samples)[max(math.ceil(share * len(samples)) - 1, 0)]
