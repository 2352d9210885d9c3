"""Whether a query without claims may be running, from the ages of its files.

Spark's own providers leave no claim. A driver that waits for input writes nothing, so old files prove nothing; young
ones show that a driver was running just now.
"""

from __future__ import annotations

from spark_ckpt.clock import Clock
from spark_ckpt.migrate.errors import QueryMayRunError
from spark_ckpt.migrate.stopped_query import StoppedQuery
from spark_ckpt.spark_files.logs import BatchLog
from spark_ckpt.storage import Storage

QUIET_SECONDS = 60
"""Files younger than this show a driver that may be running."""


def check_quiet(storage: Storage, query: StoppedQuery, clock: Clock) -> None:
    """Checks that Spark's logs are not young. A storage that reports no times passes.

    Raises:
        QueryMayRunError: an entry is young.
        StorageError: a log cannot be listed.
    """
    newest = max(
        ((file.modified_ms or 0, f"{log.value}/{file.name}") for log in BatchLog for file in storage.list(log.value)),
        default=(0, ""),
    )
    age_ms = clock.now_ms() - newest[0]
    if newest[0] and age_ms < QUIET_SECONDS * 1000:
        raise QueryMayRunError(query.location, storage.describe(newest[1]), max(0, age_ms // 1000), QUIET_SECONDS)
