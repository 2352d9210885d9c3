"""Access to the bytes of a stream state handle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from types import TracebackType
from typing import IO

import fsspec

from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError, StorageError
from spark_ckpt.flink.streams.checkpoint_paths import CheckpointPaths
from spark_ckpt.flink.streams.errors import StateFileSizeError, StateStreamFormatError
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.metadata.absolute_path import AbsolutePath
from spark_ckpt.metadata.handles import (
    ByteStreamStateHandle,
    EmptySegmentFileStateHandle,
    FileStateHandle,
    KeyGroupsStateHandle,
    RelativeFileStateHandle,
    SegmentFileStateHandle,
    StreamStateHandle,
)
from spark_ckpt.metadata.literal_urls import file_system_of_url

_PIECE_BYTES = 1 << 16
_READ_AHEAD_BYTES = 1 << 20


class StateStream:
    """Open stream of state, with random access. A context manager, which closes the file at its end.

    Args:
        path: name of the file, or of the inline state.
        file: open file.
        start: offset of the stream in `file`.
        size: bytes of the stream.
    """

    def __init__(self, path: str, file: IO[bytes], start: int, size: int) -> None:
        self.path = path
        self.size = size
        self._file = file
        self._start = start

    def input(self, start: int = 0, end: int | None = None) -> StreamInput:
        """Reader of the bytes from `start` to `end`; by default, to the end of the stream. Several may be open at once.

        Raises:
            StateStreamFormatError: the range is not within the stream.
        """
        end = self.size if end is None else end
        if not 0 <= start <= end <= self.size:
            reason = f"bytes {start} to {end} of a stream of {self.size}"
            raise StateStreamFormatError(self.path, start, "offset", reason)
        return StreamInput(self._pieces(start, end), self.path, start, end)

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            with _reading(self.path):
                self._file.seek(self._start + start)
                piece = self._file.read(min(_PIECE_BYTES, end - start))
            if not piece:
                return
            start += len(piece)
            yield piece

    def __enter__(self) -> StateStream:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class StateFiles:
    """Opener of the streams of one checkpoint's handles.

    Args:
        metadata: `_metadata` file of the checkpoint, as a path or URL.
        also, allow_outside: as in `CheckpointPaths`, which decides on the files that may be opened.
        file_system_of: returns the fsspec file system of a path or URL, with credentials if needed, and the path on it.
    """

    def __init__(
        self,
        metadata: str | os.PathLike[str],
        also: Sequence[str] = (),
        *,
        allow_outside: bool = False,
        file_system_of: Callable[[str], tuple[fsspec.AbstractFileSystem, str]] = file_system_of_url,
    ) -> None:
        self._paths = CheckpointPaths(os.fspath(metadata), also, allow_outside=allow_outside)
        self._file_system_of = file_system_of

    def open(self, handle: StreamStateHandle, *, size_is_known: bool = True) -> StateStream:
        """Open the stream of a handle.

        Args:
            handle: any stream state handle.
            size_is_known: False for changelog files: the size in their handles is not that of the file.

        Raises:
            StateFileOutsideError: the file is outside the checkpoint's storage.
            StateFileNotFoundError: the file does not exist.
            StateFileSizeError: the size of the file differs from the handle's.
            StorageError: the file cannot be read.
        """
        if isinstance(handle, KeyGroupsStateHandle):
            return self.open(handle.delegate_state_handle, size_is_known=size_is_known)
        if isinstance(handle, ByteStreamStateHandle):
            return StateStream(handle.handle_name, BytesIO(handle.data), 0, len(handle.data))
        if isinstance(handle, EmptySegmentFileStateHandle):
            return StateStream("empty segment of a merged file", BytesIO(), 0, 0)
        if isinstance(handle, SegmentFileStateHandle):
            location = self._paths.of_absolute(handle.file_path)
            file, size = self._open(location)
            if not 0 <= handle.start_pos <= handle.start_pos + handle.state_size <= size:
                file.close()
                raise StateFileSizeError(str(location), handle.start_pos + handle.state_size, size)
            return StateStream(str(location), file, handle.start_pos, handle.state_size)
        return self._whole(handle, size_is_known)

    def _whole(self, handle: FileStateHandle | RelativeFileStateHandle, size_is_known: bool) -> StateStream:
        if isinstance(handle, RelativeFileStateHandle):
            location = self._paths.of_relative(handle.relative_path)
        else:
            location = self._paths.of_absolute(handle.file_path)
        file, size = self._open(location)
        if size_is_known and handle.state_size not in (-1, size):
            file.close()
            raise StateFileSizeError(str(location), handle.state_size, size)
        return StateStream(str(location), file, 0, size)

    def _open(self, location: AbsolutePath) -> tuple[IO[bytes], int]:
        with _reading(str(location)):
            file_system, path = self._file_system_of(str(location))
            # Key groups are read in sequence, each with a seek, so reading ahead pays off.
            file = file_system.open(path, "rb", block_size=_READ_AHEAD_BYTES, cache_type="readahead")
            return file, file.seek(0, os.SEEK_END)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Translate exceptions of a file system to errors of this package. Each fsspec file system raises its own."""
    try:
        yield
    except SparkCkptError:
        raise
    except FileNotFoundError as e:
        raise StateFileNotFoundError(path) from e
    except Exception as e:
        raise StorageError(path, "read", e) from e
