"""A stopped query by its logs, whose state an import or an export transfers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_ckpt.config import PROVIDER_KEY
from spark_ckpt.location.errors import LocationNotFoundError
from spark_ckpt.migrate.errors import TransferRefusedError
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import BatchLog, SparkBatches, SparkLog, entry_name
from spark_ckpt.spark_files.text import text_of
from spark_ckpt.storage import Storage

_STATE = "org.apache.spark.sql.execution.streaming.state"
HDFS_PROVIDER = f"{_STATE}.HDFSBackedStateStoreProvider"
"""Spark's default provider."""

ROCKSDB_PROVIDER = f"{_STATE}.RocksDBStateStoreProvider"
"""Spark's provider with RocksDB."""

PROVIDERS = {HDFS_PROVIDER: "HDFS", ROCKSDB_PROVIDER: "RocksDB"}
"""Short names of the providers whose state can be imported, or written by an export."""


@dataclass(frozen=True, slots=True)
class StoppedQuery:
    """The end of a query's logs.

    Args:
        location: the checkpoint location, for messages.
        batch_id: the last committed batch.
        commit: its entry of the commit log.
        entries: contents of the offset log's entries from the batch before it on, by batch.
    """

    location: str
    batch_id: int
    commit: CommitEntry
    entries: Mapping[int, bytes]

    @property
    def newest(self) -> int:
        """The batch of the newest entry: the committed one, or the next if it has begun."""
        return max(self.entries)

    @property
    def version(self) -> int:
        """Version of the state."""
        return self.batch_id + 1

    @property
    def checkpoint_format(self) -> int:
        """Format of Spark's state stores: with 2, the commit has state ids."""
        return 1 if self.commit.state_ids is None else 2

    @property
    def has_begun(self) -> bool:
        """True if the next batch has begun."""
        return self.newest > self.batch_id

    def offsets(self, batch_id: int) -> OffsetEntry:
        """Entry of a batch in the offset log.

        Raises:
            SparkLogFormatError: the entry does not follow Spark's format.
        """
        path = f"{self.location}/{entry_name(BatchLog.OFFSETS, batch_id)}"
        return OffsetEntry.decode(self.entries[batch_id], path)

    @property
    def provider(self) -> str | None:
        """Class of the state-store provider that a start of the query uses: that of the newest entry."""
        return self.offsets(self.newest).conf.get(PROVIDER_KEY)

    def settings(self) -> str:
        """JSON text of the last committed batch's settings in the offset log, with the provider of the newest entry.

        Raises:
            TransferRefusedError: the entry was written by an old Spark, which recorded no settings.
        """
        entry = self.offsets(self.batch_id)
        if entry.metadata is None:
            raise TransferRefusedError(
                self.location,
                f"offsets/{self.batch_id} was written by an old Spark and lacks the settings of the query. Run the "
                "query with Spark 3.5 for one batch first",
            )
        # An interrupted import may have replaced this entry and not the newest.
        entry = entry if self.provider is None else entry.with_conf({PROVIDER_KEY: self.provider})
        return text_of(entry.metadata or {})

    def with_provider(self, provider: str) -> dict[int, OffsetEntry]:
        """The entries, each with another provider and otherwise unchanged."""
        return {batch: self.offsets(batch).with_conf({PROVIDER_KEY: provider}) for batch in self.entries}


def read_stopped_query(storage: Storage) -> StoppedQuery:
    """Reads the end of a query's logs.

    Args:
        storage: storage of the checkpoint location.

    Raises:
        TransferRefusedError: the query has not committed a batch, or entries are missing.
        LocationNotFoundError: the location does not exist, or is empty.
        SparkLogFormatError, StorageError: a log cannot be read.
    """
    if not storage.list(""):
        raise LocationNotFoundError(storage.location)
    log = SparkLog(storage)
    batches = SparkBatches.of(log)
    committed = batches.last_committed
    if committed < 0:
        raise TransferRefusedError(
            storage.location,
            "the commit log is empty, so there is no state to transfer. Start the query with a new checkpoint location",
        )
    later = [batch for batch in batches.started if batch > committed]
    if not batches.can_follow(committed) or later not in ([], [committed + 1]):
        raise TransferRefusedError(
            storage.location,
            f"the commit log ends with batch {committed}, and the offset log has {_ranges(batches.started)}: Spark "
            "itself cannot continue this query",
        )
    names = [batch for batch in (committed - 1, committed, committed + 1) if batch in batches.started]
    entries = {batch: storage.read(entry_name(BatchLog.OFFSETS, batch)) for batch in names}
    return StoppedQuery(storage.location, committed, log.commit(committed), entries)


def check_unchanged(storage: Storage, query: StoppedQuery) -> None:
    """Looks at a query's logs a second time, just before a switch.

    Args:
        storage: storage of the checkpoint location.
        query: the query as read before.

    Raises:
        TransferRefusedError: the query has continued.
        SparkLogFormatError, StorageError: a log cannot be read.
    """
    if read_stopped_query(storage) != query:
        raise TransferRefusedError(
            storage.location,
            f"the query has continued after batch {query.batch_id} meanwhile, so it is running. Nothing was switched. "
            "Stop it and run the command again",
        )


def _ranges(batches: tuple[int, ...]) -> str:
    return f"batches {batches[0]} to {batches[-1]}" if batches else "no batch"
