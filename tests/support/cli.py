"""Runs the program in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click
from click.testing import CliRunner

from spark_ckpt.cli.main import main


@dataclass(frozen=True)
class Run:
    """Result of a run of the program."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be a single JSON object."""
        value: dict[str, Any] = json.loads(self.stdout)
        return value

    @property
    def error(self) -> dict[str, Any]:
        """Standard error, which must be a single JSON object."""
        value: dict[str, Any] = json.loads(self.stderr)
        return value


def commands() -> dict[str, click.Command]:
    """All commands of the program by name."""
    context = click.Context(main, **main.context_settings)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def run(*arguments: object) -> Run:
    """Runs `spark-ckpt` with the arguments. Exceptions that escape the program propagate."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return Run(result.exit_code, result.stdout, result.stderr)
