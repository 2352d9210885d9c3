from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_ckpt import __version__
from spark_ckpt.cli.main import main
from spark_ckpt.metadata import CheckpointMetadata, MasterState, dump
from tests.support.cli import run


def test_help_names_the_commands() -> None:
    shown = run("--help")
    assert shown.status == 0
    for command in ("convert", "inspect", "list", "relocate"):
        assert f"\n  {command} " in shown.stdout
        assert run(command, "-h").status == 0


def test_help_names_the_commands_that_read_flink() -> None:
    text = " ".join(run("--help").stdout.split())
    named = text.partition(" also read checkpoints and savepoints of Flink")[0].partition("use spark-ckpt. ")[2]
    opening_files = {name for name, command in main.commands.items() if "moved" in {p.name for p in command.params}}
    assert {"convert", "relocate"} | opening_files == {*named.replace(" and ", ", ").split(", "), "import-flink"}


def test_short_helps_fit_a_line_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, _, listed = run("--help").stdout.partition("\nCommands:\n")
    lines = listed.splitlines()
    assert [line.split()[0] for line in lines] == sorted(main.commands)
    assert max(map(len, lines)) <= 80
    for line in lines:
        _, text = line.split(maxsplit=1)
        assert text.endswith(".") and not text.endswith("..."), line


def test_version() -> None:
    assert run("--version").stdout == f"spark-ckpt, version {__version__}\n"


@pytest.mark.parametrize("arguments", [("list",), ("inspect", "x", "--id", "-1"), ("frobnicate",), ("list", "--no")])
def test_wrong_usage_is_2(arguments: tuple[str, ...]) -> None:
    shown = run(*arguments)
    assert (shown.status, shown.stdout) == (2, "")
    assert "Usage:" in shown.stderr


def test_names_show_on_a_terminal_without_unicode(tmp_path: Path) -> None:
    dump(CheckpointMetadata(1, (MasterState("\U0001f600", b"", 1),)), tmp_path / "_metadata")
    program = [sys.executable, "-c", "from spark_ckpt.cli.main import main; main()", "inspect", str(tmp_path)]
    shown = subprocess.run(program, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True)
    assert b"\\U0001f600, version 1" in shown.stdout


def test_an_error_takes_one_line_and_no_traceback(tmp_path: Path) -> None:
    shown = run("list", tmp_path / "absent")
    assert len(shown.stderr.splitlines()) == 1
