"""The options of `inspect` about state streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from spark_ckpt.cli.stream_reader import StreamRequest

_Command = TypeVar("_Command", bound=Callable[..., None])


def stream_options(command: _Command) -> _Command:
    """Adds `--streams` and the options that go with it; the command gets `streams`, a `StreamRequest` or None."""

    @click.option("--streams", is_flag=True, help="Open the state streams too, and count what is in them.")
    @click.option("--entries", type=click.IntRange(min=1), help="Print the first N entries of each state.", metavar="N")
    @click.option(
        "--map",
        "moved",
        multiple=True,
        callback=_pairs,
        metavar="OLD=NEW",
        help="Look for files with paths below OLD in the directory NEW. Can be given several times.",
    )
    @click.option("--allow-outside", is_flag=True, help="Open files outside of the checkpoint's own storage as well.")
    @wraps(command)
    def with_request(
        *arguments: Any,  # noqa: ANN401
        streams: bool,
        entries: int | None,
        moved: list[tuple[str, str]],
        allow_outside: bool,
        **others: Any,  # noqa: ANN401
    ) -> None:
        if not streams and (entries or moved or allow_outside):
            raise click.UsageError("--entries, --map and --allow-outside say how to open streams: they need --streams")
        request = StreamRequest(entries or 0, moved, allow_outside) if streams else None
        command(*arguments, streams=request, **others)

    return cast(_Command, with_request)


def _pairs(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for value in values:
        old, equals, new = value.partition("=")
        if not (old and equals and new):
            raise click.BadParameter(f"'{value}' is not of the form OLD=NEW", param=parameter)
        pairs.append((old, new))
    return pairs
