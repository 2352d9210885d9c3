"""A database as a checkpoint of Flink has it: `CURRENT`, `MANIFEST` and tables, without a write-ahead log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spark_ckpt.flink.rocksdb.errors import MissingTableError, RocksDbFormatError
from spark_ckpt.flink.rocksdb.files import RandomAccess
from spark_ckpt.flink.rocksdb.manifest import LiveTable, read_manifest
from spark_ckpt.flink.rocksdb.merge import merged
from spark_ckpt.flink.rocksdb.table import Entry, Table

CURRENT = "CURRENT"
"""Name of the file that names the live MANIFEST."""

_MAX_NAME = 255


class Database:
    """Read-only view of a database, of whose files only the needed blocks are read.

    Args:
        files: files by their local name in the database.
        current: name of `CURRENT` for errors, if it is not among the files.

    Raises:
        RocksDbFormatError: `CURRENT` or MANIFEST is missing or damaged.
        UnsupportedRocksDbError: a feature that Flink's default options do not use.
    """

    def __init__(self, files: Mapping[str, RandomAccess], current: str = CURRENT) -> None:
        self._files = files
        self._manifest = _manifest_of(files, current)
        self._families = read_manifest(self._manifest)

    @property
    def column_families(self) -> Sequence[str]:
        """Names of all column families."""
        return sorted(self._families)

    def rows(self, family: str) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of a column family, in order of the keys; none if it does not exist.

        Memory: one block of each table of level 0, and of one table of each other level.

        Raises:
            MissingTableError: a table is missing.
            RocksDbFormatError: a table is damaged.
        """
        if (found := self._families.get(family)) is None:
            return iter(())
        opened = {live: self._open(live) for live in found.tables.values()}
        deletions = [
            deletion.within(live.smallest, live.end)
            for live, table in opened.items()
            for deletion in table.range_deletions()
        ]
        return merged(list(_runs(opened)), deletions, self._manifest.name)

    def _open(self, live: LiveTable) -> Table:
        file = self._files.get(live.file_name)
        if file is None:
            raise MissingTableError(self._manifest.name, live.file_name)
        return Table(file, live.largest_sequence)


def _runs(tables: Mapping[LiveTable, Table]) -> Iterator[Iterator[Entry]]:
    """Entries of each table of level 0, and of each other level, whose tables do not overlap."""
    levels: dict[int, list[LiveTable]] = {}
    for live in tables:
        levels.setdefault(live.level, []).append(live)
    for level, there in sorted(levels.items()):
        there.sort(key=lambda live: (live.smallest, live.number))
        if level == 0:
            yield from (tables[live].entries() for live in there)
        else:
            yield _chained([tables[live] for live in there])


def _chained(tables: Sequence[Table]) -> Iterator[Entry]:
    for table in tables:
        yield from table.entries()


def _manifest_of(files: Mapping[str, RandomAccess], current: str) -> RandomAccess:
    pointer = files.get(CURRENT)
    if pointer is None:
        raise RocksDbFormatError(current, 0, "CURRENT", "the file that names the MANIFEST is missing")
    content = pointer.read(0, min(pointer.size, _MAX_NAME + 1))
    name = content.decode(errors="replace").rstrip("\n")
    if not name.startswith("MANIFEST-") or (manifest := files.get(name)) is None:
        raise RocksDbFormatError(pointer.name, 0, "CURRENT", f"'{name}' is not among the files")
    return manifest
