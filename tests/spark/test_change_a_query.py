"""The page about changed queries: its queries run, and its commands convert their state."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_ckpt import read_state
from tests.docs.pages import DOCS, blocks, command_lines
from tests.support.cli import Run, run
from tests.support.kafka import KafkaBroker
from tests.support.provider import ProviderUnderTest
from tests.support.topics import Topic, unique_name

PAGE = DOCS / "change-a-query.md"
COMMANDS = [line for line in command_lines(PAGE) if line.startswith(("spark-ckpt evolve", "spark-ckpt rollback"))]


class Page:
    """The page, with its directories in a folder."""

    def __init__(self, spark: SparkSession, folder: Path, broker: str = "") -> None:
        self.spark = spark
        self.folder = folder
        text = "\n\n\n".join(blocks(PAGE, "python"))
        (folder / "job.py").write_text(self._here(text).replace("broker:9092", broker or "broker:9092"))
        self.names: dict[str, Any] = {}
        exec((folder / "job.py").read_text(), self.names)

    def _here(self, text: str) -> str:
        return text.replace("/data/", f"{self.folder}/data/").replace("/checkpoints/", f"{self.folder}/checkpoints/")

    def drain(self, name: str, location: str) -> None:
        """Runs a query of the page over all of its input."""
        writer = self.names[name](self.spark).format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.folder / "checkpoints" / location)).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def enter(self, line: str, *more: str) -> Run:
        """Runs a command line of the page."""
        return self.typed(self._here(line), *more)

    def typed(self, line: str, *more: str) -> Run:
        """Runs a command line."""
        _, *arguments = shlex.split(line)
        result = run(*arguments, *more)
        assert result.status == 0, result.stderr
        return result

    def state(self, location: str) -> dict[str, tuple[Any, ...]]:
        """Buffers by user."""
        rows = read_state(str(self.folder / "checkpoints" / location)).to_arrow().to_pylist()
        return {next(iter(row["key"].values())): tuple(row["value"].values()) for row in rows}


@pytest.fixture(autouse=True)
def session(spark: SparkSession, provider: ProviderUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has state that evolves")

    @contextmanager
    def of_test(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("spark_ckpt.cli.commands.evolve.spark_session", of_test)
    monkeypatch.chdir(tmp_path)


def orders(folder: Path, name: str, *rows: tuple[str, int]) -> None:
    (folder / "data" / "orders").mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"user": user, "item": "x", "amount": amount}) for user, amount in rows]
    (folder / "data" / "orders" / name).write_text("\n".join(lines))


def test_an_aggregate_more_and_the_way_back(spark: SparkSession, tmp_path: Path) -> None:
    orders(tmp_path, "1.json", ("ann", 5), ("bob", 7), ("ann", 1))
    page = Page(spark, tmp_path)
    page.drain("earlier", "counts")
    dry, real = [line for line in COMMANDS if "job.py:build" in line and "/checkpoints/counts" in line]
    assert "--dry-run" in dry
    page.enter(dry)
    printed = page.enter(real).stdout
    orders(tmp_path, "2.json", ("ann", 2), ("cyd", 3))
    page.drain("build", "counts")
    assert page.state("counts") == {"ann": (3, 2, 2), "bob": (1, None, None), "cyd": (1, 3, 3)}
    (rollback,) = [line for line in COMMANDS if "rollback" in line and "--id" in line]
    shown = printed.split("The way back: ")[1].split()
    assert page._here(rollback).rpartition(" ")[0] == " ".join(shown[:-1])
    page.typed(" ".join(shown), "--force")
    page.drain("earlier", "counts")
    assert page.state("counts") == {"ann": (3,), "bob": (1,), "cyd": (1,)}


def test_from_history_to_a_live_source(spark: SparkSession, tmp_path: Path, kafka: KafkaBroker) -> None:
    """Parquet files, then a real Kafka broker: equal to all rows in plain Python."""
    topic = Topic(kafka.bootstrap_servers, "user string, amount int", unique_name("orders")).create(2)
    history = [("ann", 5), ("bob", 7), ("ann", 1)]
    (tmp_path / "data" / "history").mkdir(parents=True)
    table = pa.table({"user": [user for user, _ in history], "amount": pa.array([n for _, n in history], pa.int32())})
    pq.write_table(table, tmp_path / "data" / "history" / "1.parquet")
    page = Page(spark, tmp_path, topic.servers)
    text = (tmp_path / "job.py").read_text().replace('"subscribe", "orders"', f'"subscribe", "{topic.name}"')
    (tmp_path / "job.py").write_text(text)
    exec(text, page.names)
    page.drain("history", "totals")
    (command,) = [line for line in COMMANDS if "job.py:live" in line]
    page.enter(command)
    live = [("ann", 2), ("cyd", 3), ("cyd", 4)]
    topic.send(live)
    page.drain("live", "totals")
    want: Counter[str] = Counter()
    for user, amount in [*history, *live]:
        want[user] += amount
    assert page.state("totals") == {user: (total,) for user, total in want.items()}
