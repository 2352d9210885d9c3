"""Queries that change in the middle of their input: files 0 to 2 before, 3 and 4 after."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_ckpt import evolve
from spark_ckpt.evolution import Evolution, EvolutionRefusedError
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import CheckpointJudge

START = datetime(2024, 1, 1, tzinfo=timezone.utc)


SCHEMA = "k string, j int, v int, w int, id int, ts timestamp, p decimal(10,2)"


Row = Mapping[str, Any]


ALL, RECENT = range(5), (3, 4)


def rows(file: int, source: int = 0) -> list[dict[str, Any]]:
    """Rows of a file."""
    rng = random.Random(1000 * source + file)
    made = []
    for _ in range(120):
        moment = START + timedelta(minutes=10 * file, seconds=rng.randrange(600))
        made.append(
            {
                "k": f"k{rng.randrange(12)}",
                "j": rng.randrange(3),
                "v": rng.randrange(100),
                "w": rng.randrange(1000),
                "id": rng.randrange(40),
                "ts": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "p": round(rng.random() * 100, 2),
            }
        )
    return made


def seconds(row: Row) -> int:
    return int(datetime.strptime(row["ts"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp())


@dataclass
class ChangedQuery:
    """A location and its input."""

    spark: SparkSession
    folder: Path
    judge: CheckpointJudge
    location: str = field(init=False)

    def __post_init__(self) -> None:
        self.location = str(self.folder / "query")
        for file in range(3):
            self.put(file)

    def put(self, file: int) -> None:
        for source in (0, 1):
            folder = self.folder / f"in{source}"
            folder.mkdir(parents=True, exist_ok=True)
            hidden = folder / f".{file}"
            hidden.write_text("\n".join(map(json.dumps, rows(file, source))))
            hidden.rename(folder / f"{file}.json")

    def more(self) -> None:
        self.put(3)
        self.put(4)

    def source(self, number: int = 0) -> DataFrame:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder / f"in{number}"))

    def run(self, frame: DataFrame, mode: str = "update", location: str | None = None) -> list[tuple[Any, ...]]:
        """Runs the query over all input, here or at another location; rows of its sink with the batch in front."""
        out: list[tuple[Any, ...]] = []

        def collect(batch: DataFrame, number: int) -> None:
            out.extend((number, *row) for row in batch.collect())

        writer = frame.writeStream.outputMode(mode).foreachBatch(collect)
        writer = writer.option("checkpointLocation", location or self.location)
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return out

    def evolve(self, frame: DataFrame, mode: str = "update", **choices: Any) -> Evolution:
        """Evolves the query, and checks that its dry run says the same and writes nothing."""
        there = sorted(self.folder.glob("query/**/*"))
        planned = evolve(frame, self.location, output_mode=mode, dry_run=True, **choices)
        assert sorted(self.folder.glob("query/**/*")) == there
        done = evolve(frame, self.location, output_mode=mode, **choices)
        assert planned.stores == done.stores
        assert planned.sources == done.sources
        self.judge.check(Path(self.location), all_retained=False)
        assert verify(LocalStorage(Path(self.location)), everything=True).is_whole
        return done

    def refused(self, frame: DataFrame, words: str, mode: str = "update", **choices: Any) -> None:
        with pytest.raises(EvolutionRefusedError, match=words):
            evolve(frame, self.location, output_mode=mode, dry_run=True, **choices)


def last(out: Sequence[tuple[Any, ...]], keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The last row of each key in update mode."""
    return {tuple(row[1 : 1 + keys]): tuple(row[1 + keys :]) for row in out}


def touched(files: Sequence[int], key: Callable[[Row], Any]) -> set[Any]:
    return {key(row) for file in files for row in rows(file)}
