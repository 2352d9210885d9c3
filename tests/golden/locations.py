"""Golden locations as files: writes them, and copies them for tests."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_ckpt import __version__, read_state
from spark_ckpt.checkpoint.meaning import SPARK_QUERY
from spark_ckpt.completed import CheckpointRecord, ClaimRecord, MetadataReference, decode_record, encode_record
from spark_ckpt.completed.processes import ProcessIdentity
from spark_ckpt.metadata import dumps, loads
from tests.golden.queries import CHECKPOINT, QUERIES, SAVEPOINT, GoldenQuery
from tests.support.feeds import Feed
from tests.support.sinks import BatchLog, Rows

LOCATIONS = Path(__file__).parent / "locations"

PLACE = "/golden-location"
"""Placeholder in the stored files for the folder in which the query ran: Spark writes absolute paths of its input."""

SUMMARY = "golden.json"
SEED = 20261122


@dataclass(frozen=True)
class Golden:
    """A golden location.

    Args:
        release: release that wrote it.
        query: its query.
        folder: its files.
    """

    release: str
    query: GoldenQuery
    folder: Path

    def __str__(self) -> str:
        return f"{self.release}-{self.query.name}"

    @property
    def summary(self) -> dict[str, Any]:
        """Content of `golden.json`: output by batch, and rows of the state."""
        fields: dict[str, Any] = json.loads((self.folder / SUMMARY).read_text())
        return fields

    def copy_to(self, folder: Path) -> Path:
        """Copies the files and adapts their paths; returns the location in the copy."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        _substitute(folder, PLACE, str(folder))
        return folder / self.query.root


def golden_locations() -> list[Golden]:
    """All golden locations, oldest release first."""
    by_name = {query.name: query for query in QUERIES}
    releases = sorted((p for p in LOCATIONS.iterdir() if p.is_dir()), key=lambda p: release_order(p.name))
    return [Golden(r.name, by_name[f.name], f) for r in releases for f in sorted(r.iterdir()) if f.is_dir()]


def release_order(release: str) -> tuple[int, ...]:
    """Sort key of releases by age."""
    return tuple(int(part) for part in release.split("."))


def feeds_of(query: GoldenQuery, folder: Path) -> dict[str, Feed]:
    """Feeds of a query in its folder, including the batches dropped there."""
    feeds = {}
    for name, schema in query.schemas.items():
        feed = feeds[name] = Feed(folder / "feeds" / name, schema)
        for file in sorted(feed.folder.glob("[0-9]*.json")):
            feed.batches.append([tuple(json.loads(line).values()) for line in file.read_text().splitlines()])
    return feeds


def batches_of(query: GoldenQuery) -> Mapping[str, list[list[Any]]]:
    """Input of a query, including the last batch."""
    return {name: [list(batch) for batch in feed] for name, feed in query.batches(random.Random(SEED)).items()}


def run(query: GoldenQuery, frame: Callable[[], DataFrame], folder: Path, location: Path) -> dict[int, Rows]:
    """Runs a query until it has read all input; returns its output by batch."""
    sink = BatchLog(folder / "out", query.mode)
    writer = sink.attach(frame().writeStream).option("checkpointLocation", str(location))
    stream = writer.start()
    try:
        stream.processAllAvailable()
    finally:
        stream.stop()
    return sink.batches()


def state_rows(query: GoldenQuery, location: Path) -> list[list[str]]:
    """Rows of the state as sorted texts, for each table named by the query."""
    tables = []
    for arguments in query.reads:
        table = read_state(str(location), **arguments).to_arrow()  # type: ignore[arg-type]
        tables.append(sorted(str(row) for row in table.drop_columns(["partition_id"]).to_pylist()))
    return tables


def as_texts(rows: Rows) -> list[list[str]]:
    """Output rows in their JSON form."""
    return [[str(value) for value in row] for row in rows]


def merged(query: GoldenQuery, outputs: Mapping[int, list[list[str]]]) -> Rows:
    """Content of a sink after these batches."""
    rows = [tuple(row) for _, batch in sorted(outputs.items()) for row in batch]
    return list({row[0]: row for row in rows}.values()) if query.mode == "update" else list(rows)


def write(spark: SparkSession, query: GoldenQuery, work: Path, target: Path) -> Path:
    """Runs a query and stores its location.

    Args:
        spark: a dedicated session.
        query: the query.
        work: an empty folder to run it in.
        target: folder of the releases.
    """
    for key, value in query.settings().items():
        spark.conf.set(key, value)
    feeds = feeds_of(query, work)
    batches = batches_of(query)
    for number in range(max(map(len, batches.values())) - 1):
        for name, feed in feeds.items():
            feed.drop(batches[name][number])
    location = work / CHECKPOINT
    outputs = run(query, lambda: query.plan(spark, feeds), work, location)
    if query.finish is not None:
        query.finish(location)
    kept = target / __version__ / query.name
    shutil.copytree(work / query.root, kept / query.root, ignore=shutil.ignore_patterns(".*.crc"))
    shutil.copytree(work / "feeds", kept / "feeds")
    _forget_machine(kept / query.root, str(work))
    _substitute(kept, str(work), PLACE)
    summary = {
        "spark_version": spark.version,
        "output": {str(batch): as_texts(rows) for batch, rows in outputs.items()},
        "state": state_rows(query, location),
    }
    (kept / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
    return kept


def _forget_machine(location: Path, work: str) -> None:
    """Replaces the machine and process that records name as their writer, and the folder of the sources in what
    `_metadata` says of the query."""
    for path in [*location.glob("ckpt/chk-*/_metadata"), *location.glob(f"../{SAVEPOINT}/_metadata")]:
        _forget_place(path, work)
    for path in [*location.glob("ckpt/completed/*.json"), *location.glob(f"../{SAVEPOINT}/savepoint.json")]:
        record = decode_record(path.read_bytes(), path.name)
        record = replace(record, owner=replace(record.owner, host="golden", pid=1))
        if isinstance(record, ClaimRecord) and record.process is not None:
            record = replace(record, process=ProcessIdentity("a boot", "pid:[1]", 1))
        if isinstance(record, CheckpointRecord):
            root = path.parent if path.name == "savepoint.json" else location / "ckpt"
            name = record.metadata.path
            record = replace(record, metadata=MetadataReference.of(name, (root / name).read_bytes()))
        path.write_bytes(encode_record(record))


def _forget_place(file: Path, work: str) -> None:
    """Forgets the folder of the sources in what a `_metadata` says of the query."""
    metadata = loads(file.read_bytes(), str(file))
    states = tuple(
        replace(state, payload=state.payload.replace(work.encode(), b"/golden")) if state.name == SPARK_QUERY else state
        for state in metadata.master_states
    )
    file.write_bytes(dumps(replace(metadata, master_states=states), metadata.version))


def _substitute(folder: Path, old: str, new: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and old.encode() in (data := path.read_bytes()):
            data.decode()  # must be text: a change of length is safe
            path.write_bytes(data.replace(old.encode(), new.encode()))
