"""Databases of RocksDB, with every compression, checksum, format and index: our rows are those of RocksDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.flink.rocksdb import (
    Database,
    InMemory,
    MissingTableError,
    RandomAccess,
    RocksDbFormatError,
    Table,
    UnsupportedRocksDbError,
)
from spark_ckpt.flink.rocksdb.database import CURRENT
from spark_ckpt.flink.rocksdb.files import Window
from spark_ckpt.flink.rocksdb.manifest import read_manifest
from tests.flink.rocksdb.conftest import ALL
from tests.flink.rocksdb.judge import Judge, Rows, Written, files_of, read

Databases = dict[Written, tuple[Path, Rows]]


@pytest.mark.parametrize("written", ALL, ids=str)
def test_rows_are_those_of_rocksdb(written: Written, databases: Databases) -> None:
    folder, rows = databases[written]
    assert set(rows) == {"default", "list"}, "the dropped column family has no rows"
    assert all(rows.values())
    assert read(files_of(folder)) == rows


def test_the_databases_have_what_they_are_to_test(databases: Databases) -> None:
    """Merged lists, several levels, range deletions, and an ingested table."""
    levels, deletions, ingested = set[int](), 0, 0
    for folder, rows in databases.values():
        assert any(b"," in value for _, value in rows["list"])
        files = files_of(folder)
        (manifest,) = (file for name, file in files.items() if name.startswith("MANIFEST"))
        for family in read_manifest(manifest).values():
            for live in family.tables.values():
                table = Table(files[live.file_name], live.largest_sequence)
                levels.add(live.level)
                deletions += len(list(table.range_deletions()))
                ingested += b"rocksdb.external_sst_file.version" in table.properties
    assert len(levels) > 1
    assert deletions
    assert ingested


class Counted:
    """A file that counts its reads."""

    def __init__(self, file: RandomAccess) -> None:
        self._file = file
        self.reads: list[tuple[int, int]] = []

    @property
    def name(self) -> str:
        return self._file.name

    @property
    def size(self) -> int:
        return self._file.size

    def read(self, offset: int, length: int) -> bytes:
        assert 0 <= offset <= offset + length <= self.size
        self.reads.append((offset, length))
        return self._file.read(offset, length)


def test_a_table_takes_few_reads(databases: Databases) -> None:
    """Footer, meta index, properties, range deletions, index; and the neighbouring data blocks in one."""
    folder, rows = databases[ALL[0]]
    files = {name: Counted(file) for name, file in files_of(folder).items()}
    database = Database(files)
    assert list(database.rows("list")) == rows["list"]
    tables = [file for name, file in files.items() if name.endswith(".sst") and file.reads]
    assert tables
    assert all(len(file.reads) <= 6 for file in tables)
    assert not any(file.reads for name, file in files.items() if name.startswith(("LOG", "OPTIONS")))


def test_an_unknown_column_family_has_no_rows(databases: Databases) -> None:
    folder, _ = databases[ALL[0]]
    assert list(Database(files_of(folder)).rows("nothing")) == []


def test_a_missing_table_is_named(databases: Databases) -> None:
    folder, _ = databases[ALL[0]]
    files = files_of(folder)
    database = Database({name: file for name, file in files.items() if not name.endswith(".sst")})
    with pytest.raises(
        MissingTableError, match=r"MANIFEST-\d+ names \d+\.sst, which is not among the files"
    ) as missing:
        list(database.rows("list"))
    assert missing.value.table in files


@pytest.mark.parametrize("content", [b"", b"MANIFEST-999999\n", b"../MANIFEST-000005\n", b"\xff" * 400])
def test_current_names_a_manifest_of_the_database(databases: Databases, content: bytes) -> None:
    folder, _ = databases[ALL[0]]
    with pytest.raises(RocksDbFormatError, match="CURRENT"):
        Database({**files_of(folder), CURRENT: InMemory(CURRENT, content)})


def test_without_current_there_is_no_database() -> None:
    with pytest.raises(RocksDbFormatError, match=r"operator 7: the file that names the MANIFEST is missing"):
        Database({}, "operator 7")


def test_a_newer_format_is_refused_by_its_number(rocksdb: Judge, tmp_path: Path) -> None:
    rocksdb.write({tmp_path / "database": Written(version=6)})
    with pytest.raises(UnsupportedRocksDbError, match="format version 6") as refused:
        read(files_of(tmp_path / "database"))
    assert refused.value.feature == "format version 6"


def test_a_window_reads_ahead_and_not_behind_the_end() -> None:
    file = Counted(InMemory("file", bytes(range(100))))
    window = Window(file, 40)
    assert [window.read(offset, 10) for offset in (0, 10, 30, 35, 90)] == [
        bytes(range(offset, offset + 10)) for offset in (0, 10, 30, 35, 90)
    ]
    assert file.reads == [(0, 40), (35, 40), (90, 10)]
