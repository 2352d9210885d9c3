"""Shared options of the commands, their session, and exit statuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import TypeVar, cast

import click
from click.shell_completion import CompletionItem

from spark_ckpt.cli.output import JsonOutput, Output, TextOutput
from spark_ckpt.figures import parse_time
from spark_ckpt.location.errors import TagNameError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.selecting import selected_id
from spark_ckpt.location.tags import check_tag_name

FAILED = 1
"""Exit status: the command failed. (0 is success and 2 wrong usage, as in click.)"""

DAMAGED = 3
"""Exit status: the command succeeded and found damage."""

IN_USE = 4
"""Exit status: a driver may be running the query. Stop it, or pass `--force`."""

REFUSED = 5
"""Exit status: the request was refused, for the reason in the message. Nothing was changed."""

_Command = TypeVar("_Command", bound=Callable[..., None])


@dataclass(slots=True)
class Session:
    """One run of the program.

    Args:
        output: destination of results and errors; text until a command's `--json` is parsed.
    """

    output: Output = field(default_factory=TextOutput)


pass_session = click.make_pass_decorator(Session, ensure=True)
"""Passes the session to a command as its first argument."""


def complete_path(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of a path: the shell lists the files."""
    return [CompletionItem(incomplete, type="file")]


_FLINK_ID_DIGITS = 32


def path_argument(name: str, *, required: bool = True) -> Callable[[_Command], _Command]:
    """An argument that is a path or URL."""
    return click.argument(name, required=required, shell_complete=complete_path)


def json_option(command: _Command) -> _Command:
    """Adds `--json`. It is parsed first, so that errors in other arguments are JSON too."""

    def choose(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(Session).output = JsonOutput()

    option = click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=choose,
        help="Print results and errors as JSON.",
    )
    return option(command)


def key_values(_: click.Context, __: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    """Callback of an option with KEY=VALUE pairs.

    Raises:
        BadParameter: one is no pair.
    """
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"'{pair}' is not KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def id_or_tag(_: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
    """Callback of an option or argument with the id of a checkpoint, a number, or the name of its tag.

    Raises:
        BadParameter: it is neither.
    """
    if value is None or (value.isascii() and value.isdecimal()):
        return None if value is None else int(value)
    try:
        check_tag_name(value)
    except TagNameError:
        raise click.BadParameter(f"'{value}' is neither the id of a checkpoint nor a tag", param=parameter) from None
    return value


def _time(_: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """A time in ISO 8601; in UTC without a time zone."""
    if value is None:
        return None
    try:
        return parse_time(value)
    except ValueError:
        raise click.BadParameter(
            f"'{value}' is not a time in ISO 8601, such as 2026-03-01T12:00", param=parameter
        ) from None


id_option = click.option(
    "--id", "checkpoint_id", type=click.IntRange(min=0), show_default="the newest", help="Id of the checkpoint."
)
"""Adds `--id` as the parameter `checkpoint_id`, None unless given."""


def checkpoint_options(location: str = "location", *, default: str = "the newest") -> Callable[[_Command], _Command]:
    """Adds `--id`, which takes a tag as well, and `--at`. The command gets the id as the parameter `checkpoint_id`,
    None unless one of them is given.

    Args:
        location: name of the command's parameter with the location.
        default: the default, as text.
    """

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def run(*args: object, selected: int | str | None, at: datetime | None, **values: object) -> None:
            if selected is not None and at is not None:
                raise click.UsageError("--id and --at are mutually exclusive")
            selection = selected if at is None else at
            if isinstance(selection, (str, datetime)):
                selection = selected_id(CheckpointLocation.open(str(values[location])), selection)
            command(*args, checkpoint_id=selection, **values)

        at = click.option(
            "--at",
            metavar="TIME",
            callback=_time,
            help="Take the newest checkpoint that was complete at a time, in ISO 8601; UTC unless it has an offset.",
        )
        by_id = click.option(
            "--id",
            "selected",
            metavar="ID|TAG",
            callback=id_or_tag,
            show_default=default,
            help="Id of the checkpoint, or its tag.",
        )
        return cast(_Command, by_id(at(run)))

    return decorate


settings_option = click.option(
    "--conf",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=key_values,
    help="Setting of the query below spark.sql.streaming.stateStore.ckpt. Repeatable. Required for completed "
    "checkpoints in ZooKeeper: store and zookeeper.*.",
)
"""Adds `--conf` as the parameter `settings`."""

force_option = click.option(
    "--force", is_flag=True, help="Proceed even if a driver may be running; a running driver is fenced off."
)
"""Adds `--force` as the parameter `force`."""

dry_run_option = click.option("--dry-run", is_flag=True, help="Check everything, but write nothing.")
"""Adds `--dry-run` as the parameter `dry_run`."""

DEFAULT_LIMIT = 20
"""Rows printed without `--limit`."""


def servers_of(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Addresses of brokers, each `HOST:PORT`.

    Raises:
        BadParameter: one is not.
    """
    for server in () if value is None else value.split(","):
        host, colon, port = server.rpartition(":")
        if not (host and colon and port.isascii() and port.isdigit()):
            raise click.BadParameter(f"'{server}' is not HOST:PORT", param=parameter)
    return value


lag_option = click.option(
    "--lag",
    "servers",
    metavar="HOST:PORT,...",
    callback=servers_of,
    help="Ask the Kafka broker at this address for the end offset of each partition, and print the lag.",
)
"""Adds `--lag` as the parameter `servers`, None unless given."""

limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Maximum number of rows to print; 0 for all.",
)
"""Adds `--limit`."""


def _moved(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for value in values:
        old, equals, new = value.partition("=")
        if not (old and equals and new):
            raise click.BadParameter(f"'{value}' is not OLD=NEW", param=parameter)
        pairs.append((old, new))
    return pairs


def flink_files_options(command: _Command) -> _Command:
    """Adds `--map` and `--allow-outside` as the parameters `moved` and `allow_outside`."""
    for option in (
        click.option(
            "--allow-outside", is_flag=True, help="Also open files of Flink outside the checkpoint's own storage."
        ),
        click.option(
            "--map",
            "moved",
            multiple=True,
            callback=_moved,
            metavar="OLD=NEW",
            help="Open files of Flink with paths below OLD in the directory NEW instead. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def _operator(_: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
    """Spark's number of an operator; other text is Flink's id, uid or name of one."""
    if value is None or not re.fullmatch(r"-?[0-9]+", value) or len(value) == _FLINK_ID_DIGITS:
        return value
    if value.startswith("-"):
        raise click.BadParameter(f"{value} is negative", param=parameter)
    return int(value)


operator_option = click.option(
    "--operator",
    callback=_operator,
    help="Spark's operator number; required if several are stateful.",
)
"""Adds `--operator` alone, None unless given."""


def store_options(command: _Command) -> _Command:
    """Adds `--operator`, `--store` and `--variable`, None unless given."""
    for option in (
        click.option(
            "--variable", help="State variable of a transformWithState operator, column family, or state of Flink."
        ),
        click.option("--store", help="Name of the store; required if the operator has several."),
        click.option(
            "--operator",
            callback=_operator,
            help="Spark's operator number, or id, uid or name of an operator of Flink; required if there are several.",
        ),
    ):
        command = option(command)
    return command
