"""On synthetic locations, the program prints what the pages show, and accepts the commands on them."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.docs.made_up import damage_newest, drop_older, make_totals
from tests.docs.pages import DOCS, PAGES, blocks, command_lines, console
from tests.docs.shapes import missing_line
from tests.flink.importing.places import target as make_import_target
from tests.flink.importing.places import variables_of_the_vectors
from tests.flink.streams.corpus import job, lay_out
from tests.support.cli import Run, run

SHOWING = tuple(DOCS / f"{name}.md" for name in ("demo", "flink", "flink-import", "operations", "reading-state"))
"""Pages with commands on the output of `make demo` or on a savepoint of Flink. The first steps use their own query."""

DAMAGED = 3
"""Exit status of `verify` on the pages that show its findings."""

RETAINED = 5
"""Number of checkpoints retained by the demo."""

ORDERS = "/checkpoints/orders"
TAG = "before-upgrade"
SAVEPOINTS = ("/backup/orders", "/backup/orders-2026-03-01")


@pytest.fixture(scope="module")
def aircraft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's location of the totals per aircraft."""
    place = tmp_path_factory.mktemp("aircraft")
    make_totals(place, "tailnum")
    drop_older(place, RETAINED)
    return place


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The location of the pages' example query."""
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
        savepoint = job("f120-savepoint-canonical-heap-p2")
        shutil.copytree(lay_out(savepoint, here / "flink").parent, here / "flink" / "savepoint-4f1e2a")
        make_import_target(here / "checkpoints" / "sums", *variables_of_the_vectors("long"))
        if arguments[0] == "verify":
            damage_newest(location)
        monkeypatch.chdir(here)
        result = run(*arguments, *_FURTHER.get(arguments[0], ()))
        assert result.status == (DAMAGED if arguments[0] == "verify" else 0), result.stderr
        printed = result.stdout.replace(f"{here}/", "")  # the pages show relative paths
        missing = missing_line(command.shown, printed.splitlines())
        assert missing is None, f"{page.name}, {command.line}: no {missing!r} in\n{printed}"


def lines_on_orders() -> list[str]:
    lines = {line for page in PAGES for line in command_lines(page) if line.startswith("spark-ckpt ")}
    here = {line for line in lines if ORDERS in line or any(place in line for place in SAVEPOINTS)}
    # Statistics come from a coordinator, and imports and exports need Spark; neither has run on these locations.
    elsewhere, without_spark = ("evolve", "history", "import", "export", "import-flink"), "--format flink"
    endless, without_driver = "--watch", "--running"
    return sorted(
        line
        for line in here
        if "://" not in line
        and (line.split()[1] not in elsewhere or without_spark in line)
        and not {endless, without_driver} & set(line.split())
    )


@pytest.mark.parametrize("line", lines_on_orders())
def test_does_what_the_page_says_to_type(line: str, orders: Path, tmp_path: Path) -> None:
    shutil.copytree(orders, tmp_path / ORDERS[1:])
    name, *arguments = shlex.split(line.removeprefix("spark-ckpt "), comments=True)
    if name == "restore":
        for savepoint in SAVEPOINTS:
            assert run("savepoint", tmp_path / ORDERS[1:], tmp_path / savepoint[1:]).status == 0
    if TAG in arguments and name != "tag":
        assert run("tag", tmp_path / ORDERS[1:], 20, TAG).status == 0
    result = run(name, *(_here(argument, tmp_path) for argument in arguments), *_FURTHER.get(name, ()))
    assert result == Run(0, result.stdout, "")
    assert result.stdout


_FURTHER = {"rollback": ["--force"], "rescale": ["--force"], "erase": ["--force"]}
"""Options needed because the owner of a synthetic location ran on another host, so its liveness is unknown."""


def _here(argument: str, folder: Path) -> str:
    """The argument with a local path, or with a number of partitions possible for the synthetic query."""
    if argument == "400":
        return "8"
    return str(folder / argument[1:]) if argument.startswith("/") else argument
