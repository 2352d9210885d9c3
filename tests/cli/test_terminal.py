"""Tables and trees on terminals of several widths: headers and values stay complete."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from spark_ckpt.cli.main import main
from spark_ckpt.cli.terminal import Column, Table
from spark_ckpt.storage import LocalStorage
from tests.cli.states import state_location
from tests.support.cli import run
from tests.support.driver import Driver, faulty_environment
from tests.support.locations import make_location

WIDTHS = (40, 80, 120, 200)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class _Terminal(io.StringIO):
    """Standard output on a terminal."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, width: int, *arguments: object) -> list[str]:
    """Lines printed by a command on a terminal, without colours."""
    terminal = _Terminal()
    with monkeypatch.context() as patch:
        for name, value in {"COLUMNS": str(width), "LINES": "50", "TERM": "xterm"}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdout", terminal)
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
    assert ended.value.code == 0
    return _STYLE.sub("", terminal.getvalue()).splitlines()


def squeezed(text: str) -> str:
    """Text without white space and tree lines, for comparison regardless of wrapping."""
    return re.sub(r"[\s│├└─]", "", text)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Locations by content."""
    directory = tmp_path_factory.mktemp("terminal")
    state_location(directory / "state")
    state_location(directory / "sources", with_sources=True)
    make_location(directory / "records")
    storage = LocalStorage(directory / "history")
    driver = Driver(directory / "history", environment=faulty_environment(storage))
    driver.batch(1)
    driver.batch(2)
    return {path.name: path for path in directory.iterdir()}


COMMANDS = {
    "list": ("records",),
    "list --sources": ("sources",),
    "inspect": ("sources",),
    "history": ("history",),
    "state": ("state",),
    "read": ("state",),
    "diff": ("sources", 2, 3),
    "history --id 3 --subtasks": ("history",),
    "inspect --streams --entries 1": ("history",),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_width_loses_a_header_or_a_value(
    command: str, width: int, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, *further = COMMANDS[command]
    name, *options = command.split()
    arguments = (name, places[str(place)], *further, *options)
    piped = run(*arguments).stdout.splitlines()
    lines = shown(monkeypatch, width, *arguments)
    assert max(map(cell_len, lines)) <= width
    everything = squeezed("".join(lines))
    for line in piped:
        for cell in re.split(r" {2,}", line):
            assert squeezed(cell) in everything


@pytest.mark.parametrize(("command", "widths"), [("list", (80, 120, 200)), ("history", (200,))])
def test_a_table_that_fits_is_the_piped_one(
    command: str, widths: tuple[int, ...], places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, *further = COMMANDS[command]
    arguments = (command, places[str(place)], *further)
    piped = run(*arguments).stdout.splitlines()
    for width in WIDTHS:
        assert (shown(monkeypatch, width, *arguments) == piped) == (width in widths)


def test_a_table_that_does_not_fit_is_one_block_for_each_record(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(monkeypatch, 40, "list", places["records"])
    names = ["ID", "BATCH", "COMPLETED", "DURATION", "SIZE", "NEW", "STATE ROWS"]
    assert [line.partition(":")[0] for line in lines] == [*names, "", *names]
    assert lines[:3] == ["ID: 2", "BATCH: 1", "COMPLETED: 2023-11-14T22:13:20.000Z"]


def test_no_row_on_a_narrow_terminal_still_names_the_columns(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(monkeypatch, 40, "read", places["state"], "--where", "value.n = 7")
    assert lines[0] == "key.user:"
    assert lines[-2:] == ["partition_id:", "0 rows"]


def test_the_width_is_that_of_the_terminal(places: dict[str, Path]) -> None:
    printed = {}
    for width in (40, 200):
        reader, writer = pty.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        subprocess.run(
            [sys.executable, "-m", "spark_ckpt", "list", str(places["records"])],
            stdin=writer,
            stdout=writer,
            stderr=writer,
            env={**environment, "TERM": "xterm"},
            check=True,
            timeout=1500,
        )
        os.close(writer)
        printed[width] = _STYLE.sub("", os.read(reader, 100_000).decode()).splitlines()
        os.close(reader)
    assert printed[40][0] == "ID: 2"
    assert printed[200] == run("list", places["records"]).stdout.splitlines()


def rendered(table: Table, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_table_of_wide_characters_is_measured_in_cells() -> None:
    table = Table([Column("NAME"), Column("N", is_number=True)])
    table.add_row("東京", "7")
    table.add_row("b\x1b", "1,000")
    assert rendered(table, 13) == ["NAME       N", "東京       7", "b\\x1b  1,000"]
    assert rendered(table, 12) == rendered(table, 13)
    assert rendered(table, 11) == ["NAME: 東京", "N: 7", "", "NAME: b\\x1b", "N: 1,000"]


def test_a_long_value_wraps_in_its_block() -> None:
    table = Table([Column("A LONG NAME"), Column("B")])
    table.add_row("0123456789" * 3, "two words")
    assert rendered(table, 12) == ["A LONG NAME:", "012345678901", "234567890123", "456789", "B: two words"]
    assert rendered(table, 5)[:4] == ["A", "LONG", "NAME:", "01234"]
