"""Standard output that is closed, a pipe without a reader, or on a full disk."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from spark_ckpt.errors import StorageError

_OF_A_STREAM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class ReaderGone(Exception):  # noqa: N818  (it is no error)
    """The reader of standard output has ended."""


def replace_closed() -> None:
    """Replaces standard streams that the program was started without by streams to /dev/null."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


@contextmanager
def writing() -> Iterator[None]:
    """Flushes standard output at the end of the block, and converts write errors.

    Raises:
        ReaderGone: standard output is a pipe, and its reader has ended.
        StorageError: standard output cannot be written.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up()
        raise ReaderGone from None
    except OSError as e:
        # An error of a file names the file; one of a stream does not.
        if isinstance(e, StorageError) or e.filename is not None or e.errno not in _OF_A_STREAM:
            raise
        _give_up()
        raise StorageError("standard output", "write", os.strerror(e.errno)) from e


def _give_up() -> None:
    # The interpreter would try to flush the buffered output again when it exits: it goes to /dev/null instead.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
