"""Progress bar over the runs of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.stores.plan import Run


@contextmanager
def shown(console: Console, runs: Sequence[Run]) -> Iterator[Iterator[Run]]:
    """Yields the runs one at a time, with a bar that shows the current one."""
    with Progress(
        TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    ) as progress:
        task = progress.add_task("", total=len(runs))

        def turns() -> Iterator[Run]:
            for run in runs:
                progress.update(task, description=f"{run.workload.name}, {run.provider}, round {run.round}")
                yield run
                progress.advance(task)

        yield turns()
