"""Queries of Spark's suites that were started and planned: their files of the state and their meaning must be equal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.metadata import load
from spark_ckpt.spark_files.schemas import with_nullable_columns

LISTENER = "org.apache.spark.sql.ckpt.PlannedQueries"

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LATER = re.compile(r"_metadata/v2/[1-9]|_stateSchema/[^/]+/[1-9]")
"""Files of later batches."""


@dataclass(frozen=True)
class Comparison:
    """Comparison of many queries.

    Args:
        files: number of queries with equal files.
        meanings: number of queries with an equal meaning as well.
        gone: number of queries whose location was gone, or that had no state.
        unplanned: what Spark said of queries that it did not plan, although it started them, by run.
        different: the difference, by run.
    """

    files: int
    meanings: int
    gone: int
    unplanned: Mapping[str, str]
    different: Mapping[str, str]


def compared(work: Path) -> Comparison:
    """Compares all queries below a folder of `PlannedQueries`."""
    files = meanings = gone = 0
    unplanned: dict[str, str] = {}
    different: dict[str, str] = {}
    for run in sorted(work.iterdir()):
        real = _files(run / "real", Path((run / "location").read_text()))
        if not real or (run / "gone").exists():
            gone += 1
        elif (run / "error").exists():
            unplanned[run.name] = (run / "error").read_text()
        elif difference := _difference(_files(run / "planned", run / "planned"), real):
            different[run.name] = difference
        else:
            files += 1
            recorded = _recorded(run / "real")
            planned = QueryMeaning.decode((run / "meaning").read_text())
            if recorded is not None and recorded != planned:
                different[run.name] = f"meaning: {recorded.encode()!r} instead of {planned.encode()!r}"
            meanings += recorded == planned
    return Comparison(files, meanings, gone, unplanned, different)


def _files(root: Path, location: Path) -> dict[str, str]:
    """Files of the state from before the second batch, without the random parts of names, and without the location."""
    found = {}
    for file in (root / "state").rglob("*"):
        name = str(file.relative_to(root))
        if file.is_file() and not _LATER.search(name) and not file.name.endswith(".crc"):
            data = file.read_bytes()
            schema = with_nullable_columns(data, name) if name.endswith("_metadata/schema") else data
            text = _location(location).sub("LOCATION", str(schema, "latin-1"))
            found[_UUID.sub("id", name)] = _UUID.sub("id", text)
    return found


def _location(path: Path) -> re.Pattern[str]:
    """A location in text, with or without a scheme."""
    return re.compile(rf"(file:)?/*{re.escape(str(path).lstrip('/'))}")


def _difference(planned: Mapping[str, str], real: Mapping[str, str]) -> str | None:
    """The first file that differs."""
    for name in sorted({*planned, *real}):
        if planned.get(name) != real.get(name):
            return f"{name}: planned {planned.get(name)!r}, real {real.get(name)!r}"
    return None


def _recorded(root: Path) -> QueryMeaning | None:
    for file in sorted((root / "ckpt").glob("chk-*/_metadata")):
        batch = spark_batch_of(load(str(file)))
        if batch is not None and batch.meaning is not None:
            return QueryMeaning.decode(batch.meaning)
    return None
