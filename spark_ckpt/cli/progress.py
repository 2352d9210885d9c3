"""A progress bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


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
