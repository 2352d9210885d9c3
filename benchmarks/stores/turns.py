"""Progress bar over the runs of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Titled(Protocol):
    """A run."""

    @property
    def title(self) -> str:
        """Name for a progress bar."""


Run = TypeVar("Run", bound=Titled)


@contextmanager
def shown(console: Console, runs: Sequence[Run]) -> Iterator[Iterator[Run]]:
    """Yields the runs one at a time, with a bar that shows the current one."""
    with Progress(
        TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    ) as progress:
        task = progress.add_task("", total=len(runs))

        def turns() -> Iterator[Run]:
            for run in runs:
                progress.update(task, description=run.title)
                yield run
                progress.advance(task)

        yield turns()
