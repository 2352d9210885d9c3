"""The terminal: tables and their console, and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import Progress
from rich.text import Text

from spark_ckpt.cli.formatting import plain

_UNLIMITED_WIDTH = 1_000_000_000
_GAP = "  "


def result_console() -> Console:
    """A console on the current standard output, with the width of the terminal; unlimited width elsewhere.

    Created per result, because a program that runs commands in-process may replace standard output.
    """
    width = None if sys.stdout.isatty() else _UNLIMITED_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False)


@contextmanager
def progress_bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a progress bar while the block runs, if standard error is a terminal.

    Args:
        doing: the activity, such as "deleting".

    Yields:
        A function that takes the amount done and the total.
    """
    console = Console(file=sys.stderr)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


class Column(NamedTuple):
    """A column of a table.

    Args:
        name: the header.
        is_number: True to align the values to the right.
        text: returns the value in a record; None if records come as texts.
    """

    name: str
    is_number: bool = False
    text: Callable[[Any], str] | None = None


def number_column(name: str, text: Callable[[Any], str] | None = None) -> Column:
    """A column with numbers, which are aligned to the right."""
    return Column(name, True, text)


def text_column(name: str, text: Callable[[Any], str]) -> Column:
    """A column with texts of records."""
    return Column(name, False, text)


def cells_of(columns: Iterable[Column], record: Any) -> list[str]:  # noqa: ANN401  (records of all types)
    """Texts of a record."""
    return [column.text(record) for column in columns if column.text is not None]


@dataclass(slots=True)
class Table:
    """Records with named fields: one line per record or, if too wide, one block of `field: value` lines.

    Headers and values are never truncated: values in blocks wrap at the width of the terminal.

    Args:
        columns: the fields.
        rows: one text per column for each record.
        printed: number of records that an earlier table has printed. They are left out, and so is the header; they
            only determine the widths.
    """

    columns: Sequence[Column]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    printed: int = 0

    @classmethod
    def of(cls, columns: Sequence[Column], records: Iterable[Any], printed: int = 0) -> Table:
        """A table of records, whose texts the columns return."""
        table = cls(columns, printed=printed)
        for record in records:
            table.add_row(*cells_of(columns, record))
        return table

    def add_row(self, *cells: str) -> None:
        """Adds a record. Characters that would control the terminal are escaped."""
        self.rows.append(tuple(map(plain, cells)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Renders the table for the available width."""
        header, *lines = self._lines()
        if max(map(cell_len, (header, *lines))) <= options.max_width:
            if not self.printed:
                yield Text(header, style="bold", no_wrap=True, overflow="ignore")
            for line in lines[self.printed :]:
                yield Text(line, no_wrap=True, overflow="ignore")
        else:
            yield from self._blocks()

    def _lines(self) -> Iterator[str]:
        names = tuple(plain(column.name) for column in self.columns)
        rows = (names, *self.rows)
        widths = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
        for row in rows:
            yield _GAP.join(map(_padded, row, widths, self.columns)).rstrip()

    def _blocks(self) -> Iterator[Text]:
        # Without records, print the names of the fields.
        for number, row in enumerate(self.rows[self.printed :] or [("",) * len(self.columns)]):
            if number:
                yield Text()
            for column, cell in zip(self.columns, row, strict=True):
                name = Text(f"{plain(column.name)}:", style="bold", overflow="fold")
                yield name.append(f" {cell}", style="not bold") if cell else name


def _padded(cell: str, width: int, column: Column) -> str:
    padding = " " * (width - cell_len(cell))
    return padding + cell if column.is_number else cell + padding
