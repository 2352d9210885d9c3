"""Text format of Spark's own files: a version line, followed by JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from spark_ckpt.spark_files.errors import SparkLogFormatError

_T = TypeVar("_T")


def lines_of(data: bytes, path: str, known: Sequence[int]) -> tuple[int, list[str]]:
    """Version in the first line (`v1`), and the remaining lines.

    Raises:
        SparkLogFormatError: the version is missing or not one of `known`.
    """
    first, *rest = decode_text(data, path).split("\n")
    if rest and not rest[-1]:
        rest.pop()
    version = first.strip().removeprefix("v")
    if not first.startswith("v") or not version.isdecimal():
        raise SparkLogFormatError(path, f"its first line is '{first[:40]}' instead of a version")
    if int(version) not in known:
        raise SparkLogFormatError(
            path, f"unknown version {version}; this release supports {', '.join(map(str, known))}"
        )
    return int(version), rest


def decode_text(data: bytes, path: str) -> str:
    """Text of a file.

    Raises:
        SparkLogFormatError: the file is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise SparkLogFormatError(path, f"it is not text ({e})") from e


def object_of(text: str, path: str) -> Mapping[str, Any]:
    """JSON object parsed from text.

    Raises:
        SparkLogFormatError: the text is not a JSON object.
    """
    try:
        value = json.loads(text)
    except ValueError as e:
        raise SparkLogFormatError(path, f"malformed JSON ({e})") from e
    if not isinstance(value, dict):
        raise SparkLogFormatError(path, "not a JSON object")
    return value


def checked(path: str, what: str, read: Callable[[], _T]) -> _T:
    """Result of `read`, a function that extracts fields of a JSON object.

    Raises:
        SparkLogFormatError: a field is missing or has another type.
    """
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise SparkLogFormatError(path, f"it does not describe {what} ({e!r})") from e


def text_of(value: Mapping[str, Any]) -> str:
    """JSON text of an object, in Spark's compact form."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
