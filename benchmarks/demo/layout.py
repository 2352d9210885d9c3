"""Where the demo keeps its things, and what the checkpoint locations tell about the queries' progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_ckpt.spark_files.logs import BatchLog, SparkLog
from spark_ckpt.storage import Storage, resolve


@dataclass(frozen=True)
class Layout:
    """The folders below the demo's work folder, and the checkpoint locations, which may be elsewhere.

    Args:
        work: the folder.
        elsewhere: URI of a folder for the checkpoint locations, as Spark is given it.
        conf: Spark's settings with which the checkpoint locations are reached.
    """

    work: Path
    elsewhere: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def feed(self) -> Path:
        """The input."""
        return self.work / "feed"

    @property
    def flights(self) -> Path:
        """The flights' files."""
        return self.feed / "flights"

    @property
    def weather(self) -> Path:
        """The weather's files."""
        return self.feed / "weather"

    def checkpoint(self, query: str) -> str:
        """Checkpoint location of a query, as Spark is given it."""
        return f"{self.elsewhere or self.work / 'checkpoints'}/{query}"

    def storage(self, query: str) -> Storage:
        """The checkpoint location of a query; S3 is found, as by the coordinator, by what Spark is told."""
        return resolve(self.checkpoint(query), self.conf)

    def table(self, query: str) -> Path:
        """Delta table of a query."""
        return self.work / "tables" / query

    @property
    def changes(self) -> Path:
        """Rows that have been computed and wait to be merged into a table."""
        return self.work / "changes"

    @property
    def verdicts(self) -> Path:
        """What the judge found."""
        return self.work / "verdicts.json"

    @property
    def judge_log(self) -> Path:
        """What the judge printed."""
        return self.work / "compare.log"

    def driver_log(self, start: int) -> Path:
        """What the driver printed, by the number of its start."""
        return self.work / f"driver-{start}.log"


@dataclass(frozen=True)
class Batches:
    """What Spark's own logs in a checkpoint location say: the last batch planned, and the last committed."""

    planned: int
    committed: int

    @property
    def running(self) -> bool:
        """Whether a batch has been planned and not committed."""
        return self.planned > self.committed


def read_batches(log: SparkLog) -> Batches:
    """The state of a query's logs; -1 where there is none yet. The commits first: they follow the plans."""
    committed = max(log.batches(BatchLog.COMMITS), default=-1)
    return Batches(max(log.batches(BatchLog.OFFSETS), default=-1), committed)


def files_done(log: SparkLog, batch: int) -> int:
    """How many files of each feed are behind a batch, as Spark's offset log has it."""
    if batch < 0:
        return 0
    offsets = log.offsets(batch).offsets.values()
    return max((json.loads(offset)["logOffset"] + 1 for offset in offsets if offset is not None), default=0)
