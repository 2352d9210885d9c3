"""Events for Flink: Parquet files, or a topic of Kafka."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.flink.sql import Query
from benchmarks.nexmark.generator import ROW_GROUP


class Input(ABC):
    """Events of a job."""

    @abstractmethod
    def lines(self, query: Query) -> Mapping[str, str]:
        """Lines of the job's order about its events."""


@dataclass(frozen=True)
class Files(Input):
    """Files with a column per field.

    Args:
        folder: their folder, as `flattened` returns it.
        number: number of files to read, the first by name.
    """

    folder: Path
    number: int

    def lines(self, query: Query) -> Mapping[str, str]:
        """The columns that the query reads."""
        return {"feed": str(self.folder), "files": str(self.number), "type": query.type, "views": query.views}


@dataclass(frozen=True)
class Topic(Input):
    """A topic with all events, as JSON with an object per kind.

    Args:
        servers: address of the broker.
        name: the topic.
    """

    servers: str
    name: str

    def lines(self, query: Query) -> Mapping[str, str]:
        """The fields that the query reads."""
        views = query.views_of_objects
        return {"servers": self.servers, "topic": self.name, "type": query.type_of_objects, "views": views}


def flattened(feed: Path) -> Path:
    """The same events in files beside them with a column per field: Flink's reader cannot skip fields of a struct."""
    target = feed.with_name(f"{feed.name}-flat")
    if not target.exists():
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for file in sorted(feed.iterdir()):
            events = pq.read_table(file).flatten()
            flat = events.rename_columns([name.replace(".", "_") for name in events.column_names])
            pq.write_table(flat, partial / file.name, row_group_size=ROW_GROUP)
        partial.rename(target)
    return target
