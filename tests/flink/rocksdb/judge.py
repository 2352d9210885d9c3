"""RocksDB itself, from Spark's jars, which writes databases for the tests and says which rows they have."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_ckpt.flink.rocksdb import Database, InMemory, RandomAccess
from tests.support.gateway import class_path
from tests.support.java import compile_java_jar

Rows = Mapping[str, Sequence[tuple[bytes, bytes]]]
"""Keys and values of each column family, in order."""


@dataclass(frozen=True, slots=True)
class Written:
    """How RocksDB writes a database.

    Args:
        compression: name of a `CompressionType`, without `_COMPRESSION`.
        checksum: name of a `ChecksumType`.
        version: format version of the tables.
        index: name of an `IndexType`.
        seed: seed of the changes.
    """

    compression: str = "SNAPPY"
    checksum: str = "kCRC32c"
    version: int = 5
    index: str = "kBinarySearch"
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.compression}-{self.checksum}-{self.version}-{self.index}-{self.seed}".lower()

    def command(self, folder: Path) -> str:
        """Command that writes the database to a folder."""
        words = (folder, self.seed, f"{self.compression}_COMPRESSION", self.checksum, self.version, self.index)
        return " ".join(map(str, ("write", *words)))


class Judge:
    """`Judge.java`.

    Args:
        folder: folder for the compiled judge, and for its output.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jar = compile_java_jar(Path(__file__).parent / "java", folder / "judge")

    def write(self, databases: Mapping[Path, Written]) -> None:
        """Writes databases to new folders."""
        self._run([written.command(folder) for folder, written in databases.items()])

    def rows(self, folders: Sequence[Path]) -> list[Rows]:
        """Rows of each database."""
        outputs = [self._folder / f"rows-{number}" for number, _ in enumerate(folders)]
        self._run([f"rows {folder} {out}" for folder, out in zip(folders, outputs, strict=True)])
        return [_parsed(out.read_text()) for out in outputs]

    def _run(self, commands: Sequence[str]) -> None:
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", class_path([self._jar]), "Judge", *commands]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
        assert done.returncode == 0, done.stderr


def _parsed(lines: str) -> Rows:
    rows: dict[str, list[tuple[bytes, bytes]]] = {}
    for line in lines.splitlines():
        family, *row = (bytes.fromhex(word) for word in line.split(" "))
        there = rows.setdefault(family.decode(), [])
        if row:
            there.append((row[0], row[1]))
    return rows


def files_of(folder: Path) -> dict[str, RandomAccess]:
    """Files of a database in a folder."""
    return {path.name: InMemory(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file()}


def read(files: Mapping[str, RandomAccess]) -> Rows:
    """Rows of a database as we read them."""
    database = Database(files)
    return {name: list(database.rows(name)) for name in database.column_families}
