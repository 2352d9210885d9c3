"""Databases of real Flink: our rows are those of RocksDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.flink.rocksdb.manifest import read_manifest
from spark_ckpt.flink.rocksdb.merge import DELETION
from spark_ckpt.flink.rocksdb.table import Table
from tests.flink.rocksdb.judge import Judge, files_of, read
from tests.flink.streams.corpus import JOBS, ROWS, WINDOWS, StateVector


def staged(vector: StateVector, handle: m.IncrementalRemoteKeyedStateHandle, folder: Path) -> Path:
    """Copies the files of a handle under their names in the database."""
    folder.mkdir()
    for file in (*handle.shared_state, *handle.private_state):
        with vector.files.open(file.handle) as stream:
            content = stream.input().raw(stream.size, "file")
        (folder / file.local_path.rpartition("/")[2]).write_bytes(content)
    return folder


def tables_of(folder: Path) -> list[tuple[str, Table]]:
    """Column family and table of each live table of a database."""
    files = files_of(folder)
    (manifest,) = (file for name, file in files.items() if name.startswith("MANIFEST-"))
    return [
        (family, Table(files[live.file_name], live.largest_sequence))
        for family, found in read_manifest(manifest).items()
        for live in found.tables.values()
    ]


def test_rows_are_those_of_rocksdb(rocksdb: Judge, tmp_path: Path) -> None:
    folders = [
        staged(vector, handle, tmp_path / f"{vector}-{number}")
        for vector in (*JOBS, *ROWS, *WINDOWS)
        for number, (_, handle) in enumerate(vector.keyed())
        if isinstance(handle, m.IncrementalRemoteKeyedStateHandle)
    ]
    assert len(folders) >= 8
    lists = 0
    for folder, rows in zip(folders, rocksdb.rows(folders), strict=True):
        assert read(files_of(folder)) == rows, folder.name
        assert len(rows) > 1
        lists += sum(b"," in value for _, value in rows.get("list", ()))
    assert lists


@pytest.mark.parametrize("vector", WINDOWS, ids=str)
def test_deletions_hide_rows_of_closed_windows(vector: StateVector, tmp_path: Path) -> None:
    """LZ4 and deletions in other files than their rows; of a clipped database, deletions of ranges as well."""
    for number, (_, handle) in enumerate(vector.keyed()):
        assert isinstance(handle, m.IncrementalRemoteKeyedStateHandle)
        folder = staged(vector, handle, tmp_path / str(number))
        tables = tables_of(folder)
        assert {table.properties[b"rocksdb.compression"] for _, table in tables} == {b"LZ4"}
        entries = [list(table.entries()) for family, table in tables if family == "window-contents"]
        deleted = [{entry.key for entry in each if entry.kind == DELETION} for each in entries]
        written = [{entry.key for entry in each if entry.kind != DELETION} for each in entries]
        assert not any(gone & there for gone, there in zip(deleted, written, strict=True))
        assert set().union(*deleted) & set().union(*written)
        there = {key for key, _ in read(files_of(folder))["window-contents"]}
        assert there
        assert not there & set().union(*deleted)
        ranges = [each for family, table in tables if family == "window-contents" for each in table.range_deletions()]
        in_ranges = {key for key in set().union(*written) if any(each.begin <= key < each.end for each in ranges)}
        assert bool(in_ranges - there) == bool(ranges) == ("clipped" in str(vector))
