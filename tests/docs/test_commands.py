"""What the pages show of the program is what it prints, on a made-up location; their Python runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import run
from tests.docs.made_up import make_aircraft
from tests.docs.pages import DOCS, REPOSITORY, Command, blocks, console
from tests.docs.shapes import missing_line

SHOWING = (REPOSITORY / "README.md", DOCS / "reading-state.md")
"""Pages with commands on what `make demo` leaves. Those of the first steps run on a query of their own."""

STATUSES = {"verify": 3}
"""Commands that are shown with something to complain about."""


def shown_on(page: Path) -> list[Command]:
    return [command for text in blocks(page, "console") for command in console(text)]


@pytest.mark.parametrize("page", SHOWING, ids=[page.name for page in SHOWING])
def test_prints_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    make_aircraft(tmp_path / "build" / "demo" / "checkpoints" / "aircraft")
    commands = shown_on(page)
    assert commands
    for command in commands:
        program, *arguments = command.words
        assert program == "spark-ckpt"
        result = run(*arguments)
        assert result.status == STATUSES.get(arguments[0], 0), result.stderr
        missing = missing_line(command.shown, result.stdout.splitlines())
        assert missing is None, f"{page.name}, {command.line}: no {missing!r} in\n{result.stdout}"
