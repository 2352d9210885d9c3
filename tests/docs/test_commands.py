"""On made-up locations the program prints what the pages show, and does what they say to type."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.docs.made_up import damage_newest, drop_older, make_totals
from tests.docs.pages import DOCS, PAGES, blocks, command_lines, console
from tests.docs.shapes import missing_line
from tests.support.cli import Run, run

SHOWING = (DOCS / "demo.md", DOCS / "operations.md", DOCS / "reading-state.md")
"""Pages with commands on what `make demo` leaves. Those of the first steps run on a query of their own."""

DAMAGED = 3
"""Exit status of `verify` on the pages that show what it finds."""

RETAINED = 5
"""Checkpoints that the demo keeps."""

ORDERS = "/checkpoints/orders"
SAVEPOINTS = ("/backup/orders", "/backup/orders-2026-03-01")


@pytest.fixture(scope="module")
def aircraft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo has left."""
    place = tmp_path_factory.mktemp("aircraft")
    make_totals(place, "tailnum")
    drop_older(place, RETAINED)
    return place


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The query that the pages speak of."""
    place = tmp_path_factory.mktemp("orders")
    make_totals(place, "user")
    return place


@pytest.mark.parametrize("page", SHOWING, ids=[page.name for page in SHOWING])
def test_prints_what_the_page_shows(
    page: Path, aircraft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    commands = [command for text in blocks(page, "console") for command in console(text)]
    assert commands
    for number, command in enumerate(commands):
        program, *arguments = command.words
        assert program == "spark-ckpt"
        here = tmp_path / str(number)
        location = here / "build" / "demo" / "checkpoints" / "aircraft"
        shutil.copytree(aircraft, location)
        if arguments[0] == "verify":
            damage_newest(location)
        monkeypatch.chdir(here)
        result = run(*arguments, *_FURTHER.get(arguments[0], ()))
        assert result.status == (DAMAGED if arguments[0] == "verify" else 0), result.stderr
        printed = result.stdout.replace(f"{here}/", "")  # the pages show paths from where they are
        missing = missing_line(command.shown, printed.splitlines())
        assert missing is None, f"{page.name}, {command.line}: no {missing!r} in\n{printed}"


def lines_on_orders() -> list[str]:
    lines = {line for page in PAGES for line in command_lines(page) if line.startswith("spark-ckpt ")}
    here = {line for line in lines if ORDERS in line or any(place in line for place in SAVEPOINTS)}
    # Statistics are made by a coordinator, which these locations have not had.
    return sorted(line for line in here if "://" not in line and " history " not in line)


@pytest.mark.parametrize("line", lines_on_orders())
def test_does_what_the_page_says_to_type(line: str, orders: Path, tmp_path: Path) -> None:
    shutil.copytree(orders, tmp_path / ORDERS[1:])
    name, *arguments = shlex.split(line.removeprefix("spark-ckpt "), comments=True)
    if name == "restore":
        for savepoint in SAVEPOINTS:
            assert run("savepoint", tmp_path / ORDERS[1:], tmp_path / savepoint[1:]).status == 0
    result = run(name, *(_here(argument, tmp_path) for argument in arguments), *_FURTHER.get(name, ()))
    assert result == Run(0, result.stdout, "")
    assert result.stdout


_FURTHER = {"rollback": ["--force"], "rescale": ["--force"]}
"""The driver of a made-up location ran on another host, of which nothing is known."""


def _here(argument: str, folder: Path) -> str:
    """The argument with a place of ours, or with a number of partitions that the made-up query can have."""
    if argument == "400":
        return "8"
    return str(folder / argument[1:]) if argument.startswith("/") else argument
