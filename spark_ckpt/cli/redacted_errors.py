"""Standard error without credentials: messages of commands and of click, warnings, and tracebacks of any library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from spark_ckpt.redaction import redacted, remember_url


class _Redacted:
    """A text stream that redacts everything written, and otherwise delegates to another stream."""

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
    """Redacts everything that the block writes to standard error.

    Args:
        arguments: command-line arguments; passwords of URLs among them are redacted even outside of the URL.
    """
    for argument in arguments:
        remember_url(argument)
    before = sys.stderr
    sys.stderr = _Redacted(before)
    try:
        yield
    finally:
        sys.stderr = before
