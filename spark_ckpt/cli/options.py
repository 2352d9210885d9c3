"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import click

from spark_ckpt.cli.console import ConsoleOutput
from spark_ckpt.cli.output import JsonOutput, Output

_Command = TypeVar("_Command", bound=Callable[..., None])


@dataclass(slots=True)
class Session:
    """One run of the program.

    Args:
        output: where results and errors go; text until a command's `--json` is seen.
    """

    output: Output = field(default_factory=ConsoleOutput)


pass_session = click.make_pass_decorator(Session, ensure=True)
"""Gives a command the session as its first argument."""


def json_option(command: _Command) -> _Command:
    """Adds `--json`. It takes effect at once, so that errors of the other arguments' values are JSON as well."""

    def choose(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(Session).output = JsonOutput()

    option = click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=choose,
        help="JSON instead of text, errors included.",
    )
    return option(command)


def _settings(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"'{pair}' is not KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


id_option = click.option(
    "--id", "checkpoint_id", type=click.IntRange(min=0), help="Which checkpoint; the newest unless given."
)
"""Adds `--id` as the parameter `checkpoint_id`, None unless given."""

settings_option = click.option(
    "--conf",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_settings,
    help="A setting of the query that begins with spark.sql.streaming.stateStore.ckpt. Needed where its completed "
    "checkpoints are in ZooKeeper: store and zookeeper.*. May be repeated.",
)
"""Adds `--conf` as the parameter `settings`."""

dry_run_option = click.option("--dry-run", is_flag=True, help="Check everything, and write nothing.")
"""Adds `--dry-run` as the parameter `dry_run`."""
