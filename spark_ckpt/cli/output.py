"""Output of commands, as text or JSON."""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from io import TextIOWrapper
from typing import Any, ClassVar, TypeAlias

import click
from rich.tree import Tree

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.results.metadata_json import describe_error
from spark_ckpt.cli.terminal import Table, result_console
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.redaction import redacted, redacted_values

FORMAT = 1
"""Version of the JSON format (docs/json.md)."""

Part: TypeAlias = "str | Table | Tree"
"""A part of a result's text; a `str` is one line."""

_NUMBERS = re.compile(r"\[\n\s+(-?[0-9]+(?:,\n\s+-?[0-9]+)*)\n\s+\]")


class Result(ABC):
    """The result of a command."""

    __slots__ = ()

    has_state_rows: ClassVar[bool] = False
    """True if it shows rows of state. They are printed without redaction."""

    @abstractmethod
    def to_json(self) -> Mapping[str, Any]:
        """The JSON object, without `format`."""

    @abstractmethod
    def render(self) -> Iterable[Part]:
        """The text, part by part."""

    def messages(self) -> Iterable[str]:
        """Lines for standard error, below the text; JSON has them as fields."""
        return ()


class Output(ABC):
    """A destination of results and errors. Results go to standard output, errors to standard error."""

    @abstractmethod
    def show(self, result: Result) -> None:
        """Prints the result of a command."""

    @abstractmethod
    def error(self, error: SparkCkptError) -> None:
        """Prints the error that a command failed with."""


class TextOutput(Output):
    """Text, with colours on a terminal. Elsewhere line length is unlimited, to keep each record on one line."""

    def show(self, result: Result) -> None:
        """Prints lines, tables and trees; then messages on standard error."""
        if isinstance(sys.stdout, TextIOWrapper):
            # Without Unicode, escapes instead of an error.
            sys.stdout.reconfigure(errors="backslashreplace")
        for part in result.render():
            if isinstance(part, str):
                click.echo(part if result.has_state_rows else redacted(part))
            else:
                result_console().print(part)
        for line in result.messages():
            click.echo(line, err=True)

    def error(self, error: SparkCkptError) -> None:
        """Prints `Error: ` and the message, as click does for usage errors; each of several reasons on its line."""
        head, *reasons = str(error).split("\n- ")
        click.echo(f"Error: {plain(head)}", err=True)
        for reason in reasons:
            click.echo(f"- {plain(reason)}", err=True)


class JsonOutput(Output):
    """One JSON object for each result or error, with `format` first.

    Attributes:
        is_on_one_line: True to print each object on a line of its own.
    """

    def __init__(self) -> None:
        self.is_on_one_line = False

    def show(self, result: Result) -> None:
        """Prints the result's object."""
        self._write(result.to_json(), is_redacted=not result.has_state_rows)

    def error(self, error: SparkCkptError) -> None:
        """Prints `{"error": name of the class, "message", and the attributes of the error}`."""
        self._write(describe_error(error), to_stderr=True)

    def _write(self, value: Mapping[str, Any], *, to_stderr: bool = False, is_redacted: bool = True) -> None:
        text = json.dumps({"format": FORMAT, **value}, indent=2, default=_fields_or_text)
        if is_redacted:
            text = json.dumps(redacted_values(json.loads(text)), indent=2)
        if self.is_on_one_line:
            click.echo(json.dumps(json.loads(text)), err=to_stderr)
            return
        # One line per offset and key group would dominate the output. Strings contain no line breaks here.
        click.echo(_NUMBERS.sub(lambda numbers: f"[{' '.join(numbers[1].split())}]", text), err=to_stderr)


def _fields_or_text(value: object) -> dict[str, Any] | str:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
