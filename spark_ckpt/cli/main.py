"""The program `spark-ckpt`: its commands, and exit statuses by error."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from spark_ckpt import __version__
from spark_ckpt.cli.command_table import COMMANDS
from spark_ckpt.cli.options import FAILED, IN_USE, REFUSED, Session
from spark_ckpt.cli.standard_streams import ReaderGone, redacted_errors, replace_closed, writing
from spark_ckpt.errors import SparkCkptError, StorageError

STATUSES = {
    "EditRefusedError": REFUSED,
    "EditRowError": REFUSED,
    "EvolutionRefusedError": REFUSED,
    "EvolutionValueError": REFUSED,
    "FlinkImportRefusedError": REFUSED,
    "FlinkImportRowError": REFUSED,
    "FlinkStateNotMappedError": REFUSED,
    "FlinkTypeError": REFUSED,
    "LocationInUseError": IN_USE,
    "MirrorDivergedError": REFUSED,
    "NotAMirrorError": REFUSED,
    "NotCommittedError": REFUSED,
    "OffsetsRefusedError": REFUSED,
    "RescaleRefusedError": REFUSED,
    "QueryMayRunError": IN_USE,
    "QueryPlanError": REFUSED,
    "RollbackRefusedError": REFUSED,
    "SourceUnreachableError": IN_USE,
    "TagExistsError": REFUSED,
    "TagRefusedError": REFUSED,
    "TransferRefusedError": REFUSED,
    "UnsupportedForFlinkError": REFUSED,
    "UnsupportedFormatError": REFUSED,
}
"""Exit statuses by the names of errors, whose modules would take as long to load as all commands."""

_PACKAGE = "spark_ckpt.cli.commands"


class _Program(click.Group):
    """A group that reports errors of its commands on standard error. Other exceptions are bugs, with a traceback.

    It loads a command once it is used: all of them take more than a second.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A command, loaded now; None for another name."""
        place = COMMANDS.get(name)
        if place is None:
            return None
        command: click.Command = getattr(import_module(f"{_PACKAGE}.{place.module}"), place.function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completions of a command's name, without loading the commands, and of the program's own options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name].help) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Runs the program. A failure to write output prints one line; a broken pipe prints nothing."""
        replace_closed()
        given = kwargs.get("args") or (args[0] if args else None) or sys.argv[1:]
        with redacted_errors([str(argument) for argument in given]):
            try:
                with writing():
                    return super().main(*args, **kwargs)
            except ReaderGone:
                sys.exit(FAILED)
            except StorageError as error:
                click.echo(f"Error: {error}", err=True)
                sys.exit(FAILED)
            except Exception:
                traceback.print_exc()
                sys.exit(FAILED)

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command; its errors become messages and exit statuses."""
        try:
            with writing():
                return super().invoke(ctx)
        except ReaderGone:
            ctx.exit(FAILED)
        except SparkCkptError as error:
            ctx.ensure_object(Session).output.error(error)
            ctx.exit(STATUSES.get(type(error).__name__, FAILED))


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spark-ckpt")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Inspect and manage the checkpoints of Spark queries that use spark-ckpt.

    convert, diff, inspect, read, relocate, state and verify also read checkpoints and savepoints of Flink. import-flink
    makes their state that of a query.
    """
    ctx.ensure_object(Session)
