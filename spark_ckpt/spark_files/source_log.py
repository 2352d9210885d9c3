"""The log of a file source, `sources/<source>`: the files of each batch (Spark: `FileStreamSourceLog`).

An entry lists the files that it adds. Every so many entries, one named `<entry>.compact` repeats all before it
(`CompactibleFileStreamLog`). A start reads the newest one of these and all entries after it, because a file that no
entry lists is new to the source, and is read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.spark_files.checksums import ChecksumFile
from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.logs import SOURCES, checksum_name
from spark_ckpt.spark_files.text import lines_of
from spark_ckpt.storage import Storage

_NAME = re.compile(r"([0-9]+)(\.compact)?")
_VERSIONS = (1,)
_CHUNK = 1 << 22
_FIELDS: Mapping[str, type] = {"path": str, "timestamp": int, "batchId": int}
"""Fields of a listed file (`FileStreamSource.FileEntry`)."""


class FileSourceLog:
    """The entries of a file source.

    Args:
        storage: storage of the checkpoint location.
        source: number of the source.

    Raises:
        StorageError: the log cannot be listed.
    """

    def __init__(self, storage: Storage, source: int) -> None:
        self._storage = storage
        self.directory = f"{SOURCES}/{source}"
        self._sizes = {file.name: file.size for file in storage.list(self.directory) if not file.is_directory}
        found = [match for name in self._sizes if (match := _NAME.fullmatch(name))]
        self.latest = max((int(match[1]) for match in found), default=-1)
        """The newest entry; -1 without one."""
        self._compacted = sorted(int(match[1]) for match in found if match[2])

    @property
    def first_read(self) -> int:
        """The first entry that a start reads (`CompactibleFileStreamLog.getAllValidBatches`)."""
        if len(self._compacted) < 2:
            return self._compacted[0] if self._compacted else 0
        interval = self._interval
        return max(0, (self.latest + 1) // interval * interval - 1)

    def name_of(self, entry: int) -> str:
        """Name of an entry's file, relative to the checkpoint location."""
        return f"{self.directory}/{entry}{'.compact' if self._is_compacted(entry) else ''}"

    def has(self, entry: int) -> bool:
        """True if the file of an entry exists."""
        return self.name_of(entry).rpartition("/")[2] in self._sizes

    def files_of(self, entry: int) -> Iterator[Mapping[str, Any]]:
        """The files that an entry lists, each with `path`, `timestamp` and `batchId`, the entry that added it.

        Raises:
            SparkLogFormatError: the entry does not follow Spark's format, or differs from its checksum file. This is
                known after the last file.
            StateFileNotFoundError, StorageError: it cannot be read.
        """
        name = self.name_of(entry)
        path = self._storage.describe(name)
        lines = self._lines(name)
        lines_of(next(lines, b""), path, _VERSIONS)
        for line in lines:
            try:
                file = msgspec.json.decode(line)
                if not all(type(file[field]) is kind for field, kind in _FIELDS.items()):
                    raise ValueError(f"another type of field in {line[:80]!r}")
            except (ValueError, KeyError, TypeError) as e:
                raise SparkLogFormatError(path, f"it does not list files ({e!r})") from e
            yield file

    def _lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file, which may have gigabytes."""
        checksums = self._checksums(name)
        rest = b""
        for content in self._content(name):
            if checksums is not None:
                checksums.update(content)
            *whole, rest = (rest + content).split(b"\n")
            yield from whole
        if rest:
            yield rest
        # Only a checksum tells whether a path is the one that was written.
        if checksums is not None and not checksums.matches():
            other = checksum_name(name).rpartition("/")[2]
            path = self._storage.describe(name)
            raise SparkLogFormatError(path, f"its content differs from the checksums in {other} beside it")

    def _content(self, name: str) -> Iterator[bytes]:
        size = self._sizes.get(name.rpartition("/")[2], 0)
        if size <= _CHUNK:
            yield self._storage.read(name)
            return
        for offset in range(0, size, _CHUNK):
            yield self._storage.read_range(name, offset, _CHUNK)

    def _checksums(self, name: str) -> ChecksumFile | None:
        other = checksum_name(name)
        if other.rpartition("/")[2] not in self._sizes:
            return None
        try:
            return ChecksumFile(self._storage.read(other))
        except StateFileNotFoundError:
            return None

    def _is_compacted(self, entry: int) -> bool:
        if len(self._compacted) < 2:
            return entry in self._compacted
        return (entry + 1) % self._interval == 0

    @property
    def _interval(self) -> int:
        """Entries from one compaction to the next (`CompactibleFileStreamLog.compactInterval`). With fewer than two, it
        depends on a setting of the query."""
        return self._compacted[-1] - self._compacted[-2]
