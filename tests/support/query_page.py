"""Queries and commands on a page of the documentation, run in a folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_ckpt import read_state
from tests.docs.pages import blocks
from tests.support.cli import Run, run

NO_CHANGES: Mapping[str, str] = {}


class QueryPage:
    """The queries and commands of a page, with its directories in a folder."""

    def __init__(self, spark: SparkSession, folder: Path, page: Path, changes: Mapping[str, str] = NO_CHANGES) -> None:
        self.spark = spark
        self.folder = folder
        text = self.here("\n\n\n".join(blocks(page, "python")))
        for shown, ours in changes.items():
            text = text.replace(shown, ours)
        (folder / "job.py").write_text(text)
        self.names: dict[str, Any] = {}
        exec((folder / "job.py").read_text(), self.names)

    def here(self, text: str) -> str:
        """Text of the page with the directories of this folder."""
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
        return self.typed(self.here(line), *more)

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


def use_session(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Lets commands that need Spark use a session of this process."""

    @contextmanager
    def of_test(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("spark_ckpt.cli.commands.evolve.spark_session", of_test)
