"""File layout of the demo, and the progress of its queries as recorded in the checkpoint locations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from benchmarks.demo.topics import Topics
from spark_ckpt.spark_files.logs import BatchLog, SparkLog
from spark_ckpt.spark_files.source_positions import FilePosition, KafkaPosition, positions_of
from spark_ckpt.storage import Storage, resolve

FLIGHTS, WEATHER = "flights", "weather"
MOVED_FLIGHTS = "flights-moved"
"""Folder of the flights after the change of the source."""


@dataclass(frozen=True)
class Layout:
    """Folders below the demo's work folder, and the checkpoint locations, which may be elsewhere.

    Args:
        work: the work folder.
        elsewhere: URI of the folder of the checkpoint locations, in the form passed to Spark.
        conf: Spark settings for access to the checkpoint locations.
        topics: the topics with the feeds; None if the queries read the files.
        stage: stage of a demo whose queries change; None for any other.
        moved: number of files of flights in the earlier folder, once another folder has replaced it; None before.
    """

    work: Path
    elsewhere: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    topics: Topics | None = None
    stage: int | None = None
    moved: int | None = None

    @property
    def feed(self) -> Path:
        """Folder of the input."""
        return self.work / "feed"

    @property
    def flights(self) -> Path:
        """Folder of the flight files that the queries read."""
        return self.feed / (FLIGHTS if self.moved is None else MOVED_FLIGHTS)

    @property
    def all_flights(self) -> list[Path]:
        """Folders of all flight files."""
        return [folder for name in (FLIGHTS, MOVED_FLIGHTS) if (folder := self.feed / name).exists()]

    @property
    def weather(self) -> Path:
        """Folder of the weather files."""
        return self.feed / WEATHER

    def checkpoint(self, query: str) -> str:
        """Checkpoint location of a query, in the form passed to Spark."""
        return f"{self.elsewhere or self.work / 'checkpoints'}/{query}"

    def storage(self, query: str) -> Storage:
        """Storage of a query's checkpoint location; S3 access follows Spark's settings, as in the coordinator."""
        return resolve(self.checkpoint(query), self.conf)

    def table(self, query: str) -> Path:
        """Table of a query."""
        return self.work / "tables" / query

    @property
    def changes(self) -> Path:
        """Computed rows waiting to be merged into a table."""
        return self.work / "changes"

    @property
    def verdicts(self) -> Path:
        """Findings of the judge."""
        return self.work / "verdicts.json"

    @property
    def judge_log(self) -> Path:
        """Output of the judge."""
        return self.work / "compare.log"

    @property
    def ui(self) -> Path:
        """File with the address of the running driver's UI."""
        return self.work / "ui"

    def driver_log(self, start: int) -> Path:
        """Output of the driver, by start number."""
        return self.work / f"driver-{start}.log"


@dataclass(frozen=True)
class Batches:
    """Last planned and last committed batch according to Spark's own logs in a checkpoint location."""

    planned: int
    committed: int

    @property
    def running(self) -> bool:
        """True if a batch has been planned but not committed."""
        return self.planned > self.committed


def read_batches(log: SparkLog) -> Batches:
    """Batches of a query; -1 where a log is empty. Reads the commits first, since they follow the plans."""
    committed = max(log.batches(BatchLog.COMMITS), default=-1)
    return Batches(max(log.batches(BatchLog.OFFSETS), default=-1), committed)


def files_done(log: SparkLog, batch: int, rows: Sequence[int] = (), moved: int | None = None) -> int:
    """Number of files of each feed covered up to a batch, according to Spark's offset log.

    Args:
        log: Spark's logs of the query.
        batch: the batch; -1 for none.
        rows: with topics, the number of rows of each file of flights.
        moved: `Layout.moved`. Positions of the flights then count from there.
    """
    if batch < 0:
        return 0
    offsets = list(log.offsets(batch).offsets.values())
    if moved is not None:
        flown = [] if offsets[0] is None else positions_of(offsets[0])
        return moved + max((each.log_offset + 1 for each in flown if isinstance(each, FilePosition)), default=0)
    positions = [position for offset in offsets if offset is not None for position in positions_of(offset)]
    files = max((position.log_offset + 1 for position in positions if isinstance(position, FilePosition)), default=0)
    flights = [p.offset for p in positions if isinstance(p, KafkaPosition) and p.topic == FLIGHTS]
    return max(files, bisect_right(list(accumulate(rows)), sum(flights)))
