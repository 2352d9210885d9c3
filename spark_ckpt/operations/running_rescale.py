"""Rescale of a running query, as the command sees it: a request, the wait for its answer, the withdrawal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.figures import count, human_duration
from spark_ckpt.location.rescale_request import (
    REQUEST,
    RescaleAnswer,
    RescaleRequest,
    create_request,
    delete_request,
    read_again,
    read_request,
)
from spark_ckpt.progress import Progress
from spark_ckpt.rescaling.errors import RescaleNotAnsweredError, RescaleRefusedError
from spark_ckpt.storage import Storage

WAIT_SECONDS = 300.0
"""Longest wait for an answer, by default."""

POLL_SECONDS = 0.2
"""Pause between two looks for the answer."""

SLOW_POLL_SECONDS = 2.0
"""The same where a request to the storage takes long, and costs money."""

_POLLS_OF_THE_LIVING = 5
"""A command that lives reads its answer within that many pauses."""

_TRIES = 3
"""Creates of the request: a file that was in the way may be gone by the time it is read."""


@dataclass(frozen=True, slots=True)
class RunningRescaling:
    """Result of a rescale of a running query.

    Args:
        location: the checkpoint location.
        before: number of partitions before.
        after: number of partitions after.
        batch_id: first batch with the new number; None if the query had it already.
        waited_ms: milliseconds from the request to its answer.
    """

    location: str
    before: int
    after: int
    batch_id: int | None
    waited_ms: int


def rescale_running(
    storage: Storage,
    partitions: int,
    *,
    timeout_s: float = WAIT_SECONDS,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> RunningRescaling:
    """Changes the number of partitions of a running query, between two of its batches. Nothing stops.

    Writes one file, the request, which the driver of the query finds and answers. This process deletes it in the end,
    whatever happens. A Ctrl-C ends the wait as its timeout does.

    Args:
        storage: storage of the checkpoint location.
        partitions: new number of partitions, 1 to the number of key groups.
        timeout_s: longest wait for the answer, in seconds.
        clock: source of time.
        progress: called before each pause with the seconds waited and the longest wait.

    Raises:
        RescaleRefusedError: the driver refuses, or the request of another command is waiting. Nothing was changed.
        RescaleNotAnsweredError: no driver has answered. The request was withdrawn.
        CheckpointError: the file is damaged, or of a later release.
        StorageError: it cannot be read, created or deleted.
    """
    clock = clock or SystemClock()
    pause = SLOW_POLL_SECONDS if storage.requests_are_slow else POLL_SECONDS
    started = clock.monotonic()
    request = RescaleRequest(partitions, clock.now_ms())
    try:
        _ask(storage, request, pause, clock)
        _wait(storage, request, timeout_s, pause, clock, progress)
    except KeyboardInterrupt:
        pass
    except SparkCkptError:
        with suppress(SparkCkptError):
            _take_back(storage, request)
        raise
    answer = _take_back(storage, request)
    waited = clock.monotonic() - started
    if answer is None:
        raise RescaleNotAnsweredError(storage.location, partitions, waited)
    if answer.refused is not None:
        raise RescaleRefusedError(storage.location, partitions, answer.refused)
    before = partitions if answer.before is None else answer.before
    return RunningRescaling(storage.location, before, partitions, answer.batch_id, int(waited * 1000))


def _ask(storage: Storage, request: RescaleRequest, pause: float, clock: Clock) -> None:
    """Creates the request. The answer of a command that has died gives way to it."""
    location, partitions = storage.location, request.partitions
    for _ in range(_TRIES):
        if create_request(storage, request):
            return
        there = read_request(storage)
        if there is None:
            continue
        if there.answer is None:
            age = human_duration(request.asked_ms - there.asked_ms)
            other = f"another command asked for {count(there.partitions, 'partition')} {age} ago, and waits"
            way_out = f"Wait for it; if that command has died, delete {storage.describe(REQUEST)}"
            raise RescaleRefusedError(location, partitions, f"{other}. {way_out}")
        clock.sleep(_POLLS_OF_THE_LIVING * pause)
        if read_request(storage) == there:
            delete_request(storage)
    raise RescaleRefusedError(location, partitions, "other commands ask at the same time. Ask again")


def _wait(
    storage: Storage, request: RescaleRequest, timeout_s: float, pause: float, clock: Clock, progress: Progress
) -> None:
    """Returns once the request is answered, or the time is over."""
    started = clock.monotonic()
    while (waited := clock.monotonic() - started) < timeout_s:
        progress(int(waited), int(timeout_s))
        clock.sleep(min(pause, timeout_s - waited))
        there = read_again(storage, request)
        if there is None:
            reason = f"{storage.describe(REQUEST)} was deleted meanwhile. Look at the query before you ask again"
            raise RescaleNotAnsweredError(storage.location, request.partitions, clock.monotonic() - started, reason)
        if there.answer is not None:
            return


def _take_back(storage: Storage, request: RescaleRequest) -> RescaleAnswer | None:
    """Deletes the request and returns its answer; leaves another one alone."""
    there = read_again(storage, request)
    if there is None:
        return None
    delete_request(storage)
    return there.answer
