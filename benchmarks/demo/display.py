"""Progress output of the demo: a bar per query and a line per event."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.demo.queries import QUERIES
from benchmarks.demo.supervisor import Kill, QueryState


class Display:
    """Progress bars on a terminal; lines only without one."""

    def __init__(self, console: Console, rows: tuple[int, ...]) -> None:
        self._console = console
        self._rows = rows
        self._kills = 0
        self._progress = Progress(
            TextColumn("{task.description:<32}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("rows  {task.fields[batches]:>3} batches"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {
            query.name: self._progress.add_task(query.title, total=sum(rows), batches=0) for query in QUERIES
        }

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def started(self, start: int) -> None:
        """Report the start of a driver."""
        self._console.print("starting the driver" if start == 1 else f"starting the driver again (start {start})")

    def progressed(self, states: list[QueryState]) -> None:
        """Move the bars."""
        for state in states:
            done = sum(self._rows[: state.files])
            self._progress.update(self._tasks[state.name], completed=done, batches=state.batches.committed + 1)

    def resumed(self, start: int, seconds: float) -> None:
        """Report the duration of the restart."""
        self._console.print(f"recovered: first batch committed {seconds:.1f} s after the start")

    def serves(self, address: str) -> None:
        """Print the address of the checkpoints in Spark's UI."""
        self._console.print(f"checkpoints in Spark's UI: {address}/checkpoints/", soft_wrap=True)

    def killed(self, kill: Kill) -> None:
        """Report the batches interrupted by a kill."""
        self._kills += 1
        batches = ", ".join(f"batch {batch} of {name}" for name, batch in kill.interrupted.items()) or "no batch"
        self._console.print(f"[bold red]SIGKILL {self._kills}[/]: the {kill.victim} died during {batches}")
