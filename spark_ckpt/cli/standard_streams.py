"""Standard output that may be closed, a broken pipe or on a full disk, and standard error without credentials."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from spark_ckpt.errors import StorageError
from spark_ckpt.redaction import redacted, remember_url

_OF_A_STREAM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class ReaderGone(Exception):  # noqa: N818  (not an error)
    """The reader of standard output is gone."""


def replace_closed() -> None:
    """Replaces missing standard streams by /dev/null."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


@contextmanager
def writing() -> Iterator[None]:
    """Flushes standard output at the end of the block, and converts write errors.

    Raises:
        ReaderGone: standard output is a broken pipe.
        StorageError: standard output cannot be written.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up()
        raise ReaderGone from None
    except OSError as e:
        # Errors of files have a file name, those of streams none.
        if isinstance(e, StorageError) or e.filename is not None or e.errno not in _OF_A_STREAM:
            raise
        _give_up()
        raise StorageError("standard output", "write", os.strerror(e.errno)) from e


def _give_up() -> None:
    # At exit the interpreter flushes the buffered output again: let it go to /dev/null.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _Redacted:
    """A text stream that redacts everything written and delegates to another stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(redacted(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)


@contextmanager
def redacted_errors(arguments: list[str]) -> Iterator[None]:
    """Redacts everything written to standard error in the block.

    Args:
        arguments: command-line arguments. Passwords in their URLs are redacted outside of the URL too.
    """
    for argument in arguments:
        remember_url(argument)
    before = sys.stderr
    sys.stderr = _Redacted(before)
    try:
        yield
    finally:
        sys.stderr = before
