"""Databases of real Flink: our rows are those of RocksDB."""

from __future__ import annotations

from pathlib import Path

from spark_ckpt import metadata as m
from tests.metadata.streams.corpus import JOBS, ROWS, StateVector
from tests.rocksdb.judge import Judge, files_of, read


def staged(vector: StateVector, handle: m.IncrementalRemoteKeyedStateHandle, folder: Path) -> Path:
    """Copies the files of a handle under their names in the database."""
    folder.mkdir()
    for file in (*handle.shared_state, *handle.private_state):
        with vector.files.open(file.handle) as stream:
            content = stream.input().raw(stream.size, "file")
        (folder / file.local_path.rpartition("/")[2]).write_bytes(content)
    return folder


def test_rows_are_those_of_rocksdb(rocksdb: Judge, tmp_path: Path) -> None:
    folders = [
        staged(vector, handle, tmp_path / f"{vector}-{number}")
        for vector in (*JOBS, *ROWS)
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
