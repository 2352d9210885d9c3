"""Entries sorted by key group in bounded memory: sorted runs, of which those that exceed it lie in a temporary file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.errors import StorageError
from spark_ckpt.flink.export.entries import Entries
from spark_ckpt.flink.types.encoded_columns import content_of

if TYPE_CHECKING:
    from typing_extensions import Self

RUN_BYTES = 32 << 20
"""Bytes of entries that are sorted at once."""

MAX_IN_MEMORY = 64 << 20
"""Bytes of sorted runs that stay in memory."""

_PIECE = 4 << 20


class SpillFile:
    """Temporary file of sorted runs that exceed `MAX_IN_MEMORY`. It has no name, so that it is gone with the process,
    however that ends.
    """

    def __init__(self) -> None:
        self._left = MAX_IN_MEMORY
        self._file: IO[bytes] | None = None
        self._end = 0

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._end

    def add(self, content: NDArray[np.uint8]) -> Stored:
        """Keep bytes.

        Raises:
            StorageError: the temporary file cannot be written.
        """
        if content.nbytes <= self._left:
            self._left -= content.nbytes
            return Stored(None, 0, memoryview(content.data))
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `__exit__`)
            self._file.write(content.data)
            self._file.flush()
        except OSError as e:
            raise StorageError(tempfile.gettempdir(), "write", e.strerror or e) from e
        start = self._end
        self._end += content.nbytes
        return Stored(self._file, start, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes in memory or in the temporary file.

    Args:
        file: the file; None in memory.
        start: start in the file.
        content: the bytes in memory.
    """

    file: IO[bytes] | None
    start: int
    content: memoryview | None

    def read(self, start: int, end: int) -> bytes:
        """Some of the bytes.

        Raises:
            StorageError: the temporary file cannot be read.
        """
        if self.content is not None:
            return bytes(self.content[start:end])
        assert self.file is not None
        try:
            data = os.pread(self.file.fileno(), end - start, self.start + start)
        except OSError as e:
            raise StorageError(tempfile.gettempdir(), "read", e.strerror or e) from e
        if len(data) != end - start:
            raise StorageError(tempfile.gettempdir(), "read", f"a temporary file ends after {len(data)} bytes")
        return data


@dataclass(frozen=True, slots=True)
class Run:
    """Entries sorted by key group.

    Args:
        stored: their bytes.
        starts: start of each key group, and the end of the last one.
        last: start of the last entry of each key group that has entries.
    """

    stored: Stored
    starts: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(cls, parts: list[Entries], max_parallelism: int, spill: SpillFile) -> Run:
        """Run of some entries.

        Raises:
            StorageError: the temporary file cannot be written.
        """
        key_groups = np.concatenate([part.key_groups for part in parts]).astype(np.int16)
        # A stable sort of 16-bit integers is a radix sort.
        order = np.argsort(key_groups, kind="stable")
        content = pa.concat_arrays([part.content for part in parts]).take(pa.array(order))
        offsets, data = content_of(content)
        ends = np.cumsum(np.bincount(key_groups, minlength=max_parallelism))
        starts = offsets[np.concatenate([np.zeros(1, np.int64), ends])]
        return cls(spill.add(data), starts, offsets[np.maximum(ends - 1, 0)])


class SortedState:
    """Entries of one state, sorted by key group.

    Args:
        max_parallelism: number of key groups.
        spill: place of runs that exceed memory.
    """

    def __init__(self, max_parallelism: int, spill: SpillFile) -> None:
        self._max_parallelism = max_parallelism
        self._spill = spill
        self._waiting: list[Entries] = []
        self._waiting_bytes = 0
        self._runs: list[Run] = []
        self.rows = 0
        """Number of entries."""

    def add(self, entries: Entries) -> None:
        """Add entries.

        Raises:
            StorageError: the temporary file cannot be written.
        """
        self._waiting.append(entries)
        self._waiting_bytes += entries.content.nbytes
        self.rows += len(entries.key_groups)
        if self._waiting_bytes >= RUN_BYTES:
            self.finish()

    def finish(self) -> None:
        """Sort what has been added.

        Raises:
            StorageError: the temporary file cannot be written.
        """
        if self._waiting:
            self._runs.append(Run.of(self._waiting, self._max_parallelism, self._spill))
        self._waiting, self._waiting_bytes = [], 0

    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each key group."""
        total = np.zeros(self._max_parallelism, np.int64)
        for run in self._runs:
            total += np.diff(run.starts)
        return total

    def read(self, key_group: int) -> Iterator[bytes | bytearray]:
        """Bytes of a key group. The top bit of the last entry's key is set, as Flink marks the end of a state.

        Raises:
            StorageError: the temporary file cannot be read.
        """
        runs = [run for run in self._runs if run.starts[key_group + 1] > run.starts[key_group]]
        for number, run in enumerate(runs):
            start, end = int(run.starts[key_group]), int(run.starts[key_group + 1])
            mark = int(run.last[key_group]) + 4 if number == len(runs) - 1 else -1
            for at in range(start, end, _PIECE):
                piece = run.stored.read(at, min(end, at + _PIECE))
                if at <= mark < at + _PIECE:
                    marked = bytearray(piece)
                    marked[mark - at] |= 0x80
                    yield marked
                else:
                    yield piece
