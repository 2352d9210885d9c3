"""The options that say which rows of state are meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., None])

DEFAULT_LIMIT = 20
"""Rows that are printed unless others are asked for."""


def store_options(command: _Command) -> _Command:
    """Adds `--operator`, `--store` and `--variable`, None unless given."""
    for option in (
        click.option("--variable", help="State variable of a transformWithState, or a column family."),
        click.option("--store", help="Name of the store; needed where the operator has several."),
        click.option(
            "--operator",
            type=click.IntRange(min=0),
            help="Spark's number of the operator; needed if there are several.",
        ),
    ):
        command = option(command)
    return command


limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Most rows to print; 0 for all.",
)
"""Adds `--limit`."""
