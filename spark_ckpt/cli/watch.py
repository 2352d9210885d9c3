"""`--watch`: a result that is read again and again, while the query runs."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import click

from spark_ckpt.cli.options import Session
from spark_ckpt.cli.output import JsonOutput, Result
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.config import units
from spark_ckpt.errors import SparkCkptError

INTERRUPTED = 130
"""Exit status after Ctrl-C, as of a shell."""

DEFAULT_SECONDS = 2
_MIN_SECONDS, _MAX_SECONDS = 0.1, 24 * 3600.0

_Entry = TypeVar("_Entry")


class Watchable(Result):
    """A result with entries that appear one after the other."""

    __slots__ = ()

    @abstractmethod
    def entries(self) -> Mapping[object, object]:
        """The entries by a key that never changes, in order."""

    @abstractmethod
    def only(self, keys: Collection[object], *, continues: bool) -> Result:
        """This result with these entries only.

        Args:
            keys: keys of the entries.
            continues: True if entries were printed before, so that text needs no header.
        """


def interval(_: click.Context, parameter: click.Parameter, text: str) -> float:
    """Callback of an option with the pause between two readings; in seconds.

    Raises:
        BadParameter: it is no duration, or too short or too long.
    """
    return _checked(parameter, text)


def _seconds(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    return None if text is None else _checked(parameter, text, ". Put --watch after LOCATION")


def _checked(parameter: click.Parameter, text: str, hint: str = "") -> float:
    try:
        seconds = units.milliseconds(text) / 1000
    except ValueError as error:
        raise click.BadParameter(f"{error}{hint}", param=parameter) from error
    if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
        raise click.BadParameter(f"'{text}' is not between 100ms and 24h", param=parameter)
    return seconds


watch_option = click.option(
    "--watch",
    "watch_seconds",
    is_flag=False,
    flag_value=str(DEFAULT_SECONDS),
    metavar="[SECONDS]",
    callback=_seconds,
    help=f"Read again every {DEFAULT_SECONDS} seconds, or SECONDS (also as 500ms, 1m), until Ctrl-C. A terminal shows "
    "the current state; elsewhere only new lines are appended, with --json one object per line and change.",
)
"""Adds `--watch` as the parameter `watch_seconds`, None unless given."""

last_option = click.option("--last", type=click.IntRange(min=1), metavar="N", help="Show only the last N checkpoints.")
"""Adds `--last`, None unless given."""


def newest(entries: Sequence[_Entry], last: int | None) -> Sequence[_Entry]:
    """The entries that `--last` selects, of those in the order of age."""
    return entries if last is None else entries[-last:]


def follow(session: Session, seconds: float, read: Callable[[], Watchable], clock: Clock | None = None) -> None:
    """Shows a result, and its changes until Ctrl-C. Ends the program.

    A reading that fails is reported once and tried again, except the first.

    Args:
        session: the run of the program.
        seconds: pause between two readings.
        read: reads the result.
        clock: clock that pauses.

    Raises:
        SparkCkptError: the first reading failed.
    """
    clock = clock or SystemClock()
    watcher = _Watcher(session, seconds)
    try:
        watcher.show(read())
        while True:
            sys.stdout.flush()
            clock.sleep(seconds)
            try:
                result = read()
            except SparkCkptError as error:
                watcher.report(error)
            else:
                watcher.show(result)
    except KeyboardInterrupt:
        click.get_current_context().exit(INTERRUPTED)


class _Watcher:
    def __init__(self, session: Session, seconds: float) -> None:
        self._output = session.output
        self._is_json = isinstance(session.output, JsonOutput)
        self._is_terminal = not self._is_json and sys.stdout.isatty()
        self._seconds = seconds
        self._shown: Mapping[object, object] | None = None
        self._failure: str | None = None
        if isinstance(session.output, JsonOutput):
            session.output.is_on_one_line = True

    def show(self, result: Watchable) -> None:
        entries, before = result.entries(), self._shown
        self._shown = entries
        has_recovered, self._failure = self._failure is not None, None
        if self._is_terminal:
            if entries != before or has_recovered:
                click.clear()
                click.echo(f"every {self._seconds:g} s; Ctrl-C ends")
                self._output.show(result)
            return
        if before is None:
            self._output.show(result)
            return
        # A later checkpoint completes the statistics of an earlier one. Text does not repeat its line.
        new = [key for key, entry in entries.items() if key not in before or (self._is_json and entry != before[key])]
        if new:
            self._output.show(result.only(new, continues=bool(before)))

    def report(self, error: SparkCkptError) -> None:
        if str(error) != self._failure:
            self._failure = str(error)
            self._output.error(error)
