"""The first steps as a new user follows them: start a query, kill it, restart it, and look at its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, Command, blocks, console
from tests.docs.shapes import missing_line
from tests.support.checkpoints import completed_checkpoints
from tests.support.cli import run
from tests.support.processes import DriverJob, kill
from tests.support.session import use_this_python

PAGE = DOCS / "first-steps.md"
START = "python job.py &"
KILL = "kill -9 $!"

SHOWN = 3
"""Minimum number of checkpoints of each driver in the page's output."""


class Terminal:
    """Executes the command lines of the page in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.drivers: list[DriverJob] = []

    def enter(self, command: Command) -> None:
        if command.line == START:
            self._start()
        elif command.line == KILL:
            kill(self.drivers[-1].pid)  # only Python: the page says that the JVM ends with it
            self.drivers[-1].wait()
        else:
            program, *arguments = command.words
            assert program == "spark-ckpt"
            result = run(*arguments)
            assert result.status == 0, result.stderr
            printed = result.stdout.replace(f"{self.folder}/", "")
            missing = missing_line(command.shown, printed.splitlines())
            assert missing is None, f"{command.line}: no {missing!r} in\n{printed}"

    def _start(self) -> None:
        """Starts the query, and returns once it has the checkpoints that the page shows."""
        location = self.folder / "checkpoint"
        before = len(completed_checkpoints(location))
        driver = DriverJob(str(self.folder / "job.py"), self.folder, [])
        self.drivers.append(driver)
        assert driver.await_(lambda: len(completed_checkpoints(location)) >= before + SHOWN), driver.output()[-4000:]


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    use_this_python()
    terminal = Terminal(tmp_path)
    yield terminal
    for driver in terminal.drivers:
        driver.kill()


@pytest.mark.spark
@pytest.mark.slow
def test_they_go_as_the_page_says(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    job, check = blocks(PAGE, "python")
    (terminal.folder / "job.py").write_text(job, encoding="utf-8")
    for block in blocks(PAGE, "console"):
        for command in console(block):
            terminal.enter(command)
    exec(check, {})
    assert "each counted once" in capsys.readouterr().out
    assert len(terminal.drivers) == 2
