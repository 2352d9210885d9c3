"""The program `spark-ckpt`: its commands, and exit statuses by error."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import click

from spark_ckpt import __version__
from spark_ckpt.cli.commands.convert import convert_checkpoint
from spark_ckpt.cli.commands.diff import diff_checkpoints
from spark_ckpt.cli.commands.doctor import examine_location
from spark_ckpt.cli.commands.edit import edit_rows
from spark_ckpt.cli.commands.erase import erase_keys
from spark_ckpt.cli.commands.evolve import evolve_query
from spark_ckpt.cli.commands.export import export_query
from spark_ckpt.cli.commands.gc import collect_orphans
from spark_ckpt.cli.commands.history import show_history
from spark_ckpt.cli.commands.import_ import import_query
from spark_ckpt.cli.commands.import_flink import import_flink_state
from spark_ckpt.cli.commands.inspect import inspect_checkpoint
from spark_ckpt.cli.commands.list import list_checkpoints
from spark_ckpt.cli.commands.offsets import show_or_move_offsets
from spark_ckpt.cli.commands.probe import probe_storage
from spark_ckpt.cli.commands.read import read_rows
from spark_ckpt.cli.commands.relocate import relocate_checkpoint
from spark_ckpt.cli.commands.rescale import rescale_query
from spark_ckpt.cli.commands.restore import restore_checkpoint
from spark_ckpt.cli.commands.rollback import roll_back_query
from spark_ckpt.cli.commands.savepoint import take_savepoint_of_query
from spark_ckpt.cli.commands.state import show_state
from spark_ckpt.cli.commands.verify import verify_checkpoints
from spark_ckpt.cli.options import FAILED, IN_USE, REFUSED, Session
from spark_ckpt.cli.standard_streams import ReaderGone, redacted_errors, replace_closed, writing
from spark_ckpt.edit.errors import EditRefusedError, EditRowError
from spark_ckpt.errors import SparkCkptError, StorageError, UnsupportedFormatError
from spark_ckpt.evolution.errors import EvolutionRefusedError, EvolutionValueError, QueryPlanError
from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.importing.errors import (
    FlinkImportRefusedError,
    FlinkImportRowError,
    FlinkStateNotMappedError,
    FlinkTypeError,
)
from spark_ckpt.location.errors import LocationInUseError, NotCommittedError
from spark_ckpt.migrate.errors import QueryMayRunError, TransferRefusedError
from spark_ckpt.operations.errors import OffsetsRefusedError, RescaleRefusedError, RollbackRefusedError

_STATUSES = {
    EditRefusedError: REFUSED,
    EditRowError: REFUSED,
    EvolutionRefusedError: REFUSED,
    EvolutionValueError: REFUSED,
    FlinkImportRefusedError: REFUSED,
    FlinkImportRowError: REFUSED,
    FlinkStateNotMappedError: REFUSED,
    FlinkTypeError: REFUSED,
    LocationInUseError: IN_USE,
    NotCommittedError: REFUSED,
    OffsetsRefusedError: REFUSED,
    RescaleRefusedError: REFUSED,
    QueryMayRunError: IN_USE,
    QueryPlanError: REFUSED,
    RollbackRefusedError: REFUSED,
    TransferRefusedError: REFUSED,
    UnsupportedForFlinkError: REFUSED,
    UnsupportedFormatError: REFUSED,
}


class _Program(click.Group):
    """A group that reports errors of its commands on standard error. Other exceptions are bugs, with a traceback."""

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
            ctx.exit(_STATUSES.get(type(error), FAILED))


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spark-ckpt")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Inspect and manage the checkpoints of Spark queries that use spark-ckpt.

    convert, diff, inspect, read, relocate, state and verify also read checkpoints and savepoints of Flink. import-flink
    makes their state that of a query.
    """
    ctx.ensure_object(Session)


main.add_command(collect_orphans)
main.add_command(convert_checkpoint)
main.add_command(edit_rows)
main.add_command(erase_keys)
main.add_command(evolve_query)
main.add_command(diff_checkpoints)
main.add_command(examine_location)
main.add_command(export_query)
main.add_command(import_query)
main.add_command(import_flink_state)
main.add_command(inspect_checkpoint)
main.add_command(list_checkpoints)
main.add_command(probe_storage)
main.add_command(read_rows)
main.add_command(show_history)
main.add_command(show_or_move_offsets)
main.add_command(show_state)
main.add_command(relocate_checkpoint)
main.add_command(restore_checkpoint)
main.add_command(roll_back_query)
main.add_command(take_savepoint_of_query)
main.add_command(verify_checkpoints)
main.add_command(rescale_query)
