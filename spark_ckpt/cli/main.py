"""The program `spark-ckpt`: its commands, and what becomes of their errors."""

from __future__ import annotations

import click

from spark_ckpt import __version__
from spark_ckpt.cli.convert_command import convert_checkpoint
from spark_ckpt.cli.diff_command import diff_checkpoints
from spark_ckpt.cli.gc_command import collect_orphans
from spark_ckpt.cli.history_command import show_history
from spark_ckpt.cli.inspect_command import inspect_checkpoint
from spark_ckpt.cli.list_command import list_checkpoints
from spark_ckpt.cli.options import Session
from spark_ckpt.cli.read_command import read_rows
from spark_ckpt.cli.relocate_command import relocate_checkpoint
from spark_ckpt.cli.rescale_command import rescale_query
from spark_ckpt.cli.restore_command import restore_checkpoint
from spark_ckpt.cli.rollback_command import roll_back_query
from spark_ckpt.cli.savepoint_command import take_savepoint_of_query
from spark_ckpt.cli.state_command import show_state
from spark_ckpt.cli.statuses import FAILED, IN_USE, REFUSED
from spark_ckpt.cli.verify_command import verify_checkpoints
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.operations.errors import (
    LocationInUseError,
    NotCommittedError,
    RescaleRefusedError,
    RollbackRefusedError,
)

_STATUSES = {
    LocationInUseError: IN_USE,
    NotCommittedError: REFUSED,
    RescaleRefusedError: REFUSED,
    RollbackRefusedError: REFUSED,
}


class _Program(click.Group):
    """Commands whose errors are messages on standard error. Anything else that escapes is a bug, and shows as one."""

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except SparkCkptError as error:
            ctx.ensure_object(Session).output.error(error)
            ctx.exit(_STATUSES.get(type(error), FAILED))


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spark-ckpt")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Look at checkpoints, rewrite their metadata, tidy up: those of Spark queries with spark-ckpt, and Flink's."""
    ctx.ensure_object(Session)


main.add_command(collect_orphans)
main.add_command(convert_checkpoint)
main.add_command(diff_checkpoints)
main.add_command(inspect_checkpoint)
main.add_command(list_checkpoints)
main.add_command(read_rows)
main.add_command(show_history)
main.add_command(show_state)
main.add_command(relocate_checkpoint)
main.add_command(restore_checkpoint)
main.add_command(roll_back_query)
main.add_command(take_savepoint_of_query)
main.add_command(verify_checkpoints)
main.add_command(rescale_query)
