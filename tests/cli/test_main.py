from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from spark_ckpt import __version__
from spark_ckpt.cli.command_table import COMMANDS
from spark_ckpt.cli.main import STATUSES
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata import CheckpointMetadata, MasterState, dump
from tests.support.cli import commands, run


def test_help_names_the_commands() -> None:
    shown = run("--help")
    assert shown.status == 0
    for command in ("convert", "inspect", "list", "relocate"):
        assert f"\n  {command} " in shown.stdout
        assert run(command, "-h").status == 0


def test_help_names_the_commands_that_read_flink() -> None:
    text = " ".join(run("--help").stdout.split())
    named = text.partition(" also read checkpoints and savepoints of Flink")[0].partition("use spark-ckpt. ")[2]
    opening_files = {name for name, command in commands().items() if "moved" in {p.name for p in command.params}}
    assert {"convert", "relocate"} | opening_files == {*named.replace(" and ", ", ").split(", "), "import-flink"}


def test_short_helps_fit_a_line_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, _, listed = run("--help").stdout.partition("\nCommands:\n")
    lines = listed.splitlines()
    assert [line.split()[0] for line in lines] == sorted(commands())
    assert max(map(len, lines)) <= 80
    for line in lines:
        _, text = line.split(maxsplit=1)
        assert text.endswith(".") and not text.endswith("..."), line


def test_the_table_has_each_command_with_its_help() -> None:
    found = commands()
    assert found.keys() == COMMANDS.keys()
    for name, command in found.items():
        assert (command.name, command.get_short_help_str(limit=100)) == (name, COMMANDS[name].help)
    modules = {file.stem for file in Path(import_module("spark_ckpt.cli.commands").__path__[0]).glob("[a-z]*.py")}
    assert modules == {place.module for place in COMMANDS.values()}


def test_statuses_belong_to_errors() -> None:
    commands()

    def names(kind: type) -> set[str]:
        return {kind.__name__}.union(*map(names, kind.__subclasses__()))

    assert STATUSES.keys() <= names(SparkCkptError)


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("list", "--help")])
def test_a_command_loads_no_other(arguments: tuple[str, ...]) -> None:
    code = "import sys; from spark_ckpt.cli.main import main; main(standalone_mode=False); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in shown.stdout.split() if name.startswith("spark_ckpt.cli.commands.")}
    assert loaded == {name for name in arguments if not name.startswith("-")}


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
