"""Races between creates of one file, which show that a storage lets more than one of them win."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from spark_ckpt.storage.base import CreateOutcome, Storage

CONTENDERS = 4
"""Creates of one file at once. SeaweedFS answers more of them later than a client waits."""

ROUNDS = 3
"""Files that are raced for, all at once."""

SEVERAL_WON = "several creates of one file at the same time have succeeded"


def probe_names(directory: str, count: int) -> list[str]:
    """Names of files of a probe. `gc` deletes such files if a process dies before it does."""
    return [f"{directory}/probe-{uuid.uuid4().hex}" for _ in range(count)]


def several_won(storage: Storage, names: Sequence[str], contenders: int = CONTENDERS) -> bool:
    """Creates each file several times at once. The files stay.

    A storage that looks for the file and then writes it lets several creates win, although it refuses a second create
    that begins when the first has ended. A race shows that by chance only.

    Args:
        storage: the storage.
        names: files that do not exist.
        contenders: number of creates per file.

    Returns:
        True if several creates of a file won.

    Raises:
        StorageError, ExclusiveCreateUnsupportedError: as `Storage.create_exclusive`.
    """
    start = threading.Barrier(len(names) * contenders)

    def create(number: int) -> bool:
        start.wait()
        result = storage.create_exclusive(names[number % len(names)], b"%d" % number * 100)
        return result.outcome is CreateOutcome.WON

    with ThreadPoolExecutor(start.parties, "spark-ckpt-probe") as threads:
        won = list(threads.map(create, range(start.parties)))
    return any(sum(won[i :: len(names)]) > 1 for i in range(len(names)))
