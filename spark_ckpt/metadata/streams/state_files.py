"""From a stream state handle to the bytes of its stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from types import TracebackType
from typing import IO

import fsspec

from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError, StorageError
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
from spark_ckpt.metadata.streams.checkpoint_paths import CheckpointPaths
from spark_ckpt.metadata.streams.errors import StateFileSizeError, StateStreamFormatError
from spark_ckpt.metadata.streams.stream_input import StreamInput

_PIECE_BYTES = 1 << 16
_READ_AHEAD_BYTES = 1 << 20


class StateStream:
    """One open stream of state, of which any part can be read. A context manager; closing it closes the file.

    Args:
        path: name of the file, or of the inline state.
        file: where the bytes are.
        start: where in `file` the stream begins.
        size: bytes of the stream.
    """

    def __init__(self, path: str, file: IO[bytes], start: int, size: int) -> None:
        self.path = path
        self.size = size
        self._file = file
        self._start = start

    def input(self, start: int = 0, end: int | None = None) -> StreamInput:
        """A reader of the bytes from `start` to `end`, by default to the end of the stream. Several may be in use.

        Raises:
            StateStreamFormatError: the stream has no such part.
        """
        end = self.size if end is None else end
        if not 0 <= start <= end <= self.size:
            reason = f"bytes {start} to {end} of a stream that has {self.size}"
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
        self._file.close()


class StateFiles:
    """Opens the streams that the handles of one checkpoint stand for.

    Args:
        metadata: its `_metadata` file, as a path or URL.
        also, allow_outside: as in `CheckpointPaths`, which says what may be opened.
        file_system_of: gives the fsspec file system of a path or URL, and the path on it; with credentials, if need be.
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
        """The stream of a handle.

        Args:
            handle: any stream state handle.
            size_is_known: whether the handle has the size of the file; those of changelog files have another.

        Raises:
            StateFileOutsideError: its file lies outside of the checkpoint's storage.
            StateFileNotFoundError: there is no such file.
            StateFileSizeError: the file has another size than the handle.
            StorageError: the file cannot be read.
        """
        if isinstance(handle, KeyGroupsStateHandle):
            return self.open(handle.delegate_state_handle, size_is_known=size_is_known)
        if isinstance(handle, ByteStreamStateHandle):
            return StateStream(handle.handle_name, BytesIO(handle.data), 0, len(handle.data))
        if isinstance(handle, EmptySegmentFileStateHandle):
            return StateStream("empty part of a merged file", BytesIO(), 0, 0)
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
            # One key group after another is read, each with a seek: what lies ahead is worth having.
            file = file_system.open(path, "rb", block_size=_READ_AHEAD_BYTES, cache_type="readahead")
            return file, file.seek(0, os.SEEK_END)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turns what a file system raises into an error of ours. Every fsspec file system has exceptions of its own."""
    try:
        yield
    except SparkCkptError:
        raise
    except FileNotFoundError as e:
        raise StateFileNotFoundError(path) from e
    except Exception as e:
        raise StorageError(path, "read", e) from e
