"""`spark-ckpt convert`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, dry_run_option, id_option, json_option, pass_session
from spark_ckpt.cli.rewriting import rewrite
from spark_ckpt.locations.location import find_checkpoint
from spark_ckpt.metadata import convert


@click.command("convert")
@click.argument("source")
@click.argument("target")
@click.option("--to-version", type=click.Choice(["2", "3"]), required=True, help="Version of the new file.")
@id_option
@dry_run_option
@json_option
@pass_session
def convert_checkpoint(
    session: Session, source: str, target: str, to_version: str, checkpoint_id: int | None, dry_run: bool
) -> None:
    """Write the metadata of a checkpoint as a file of another version, for a release of Flink that needs it.

    SOURCE is what `inspect` takes. TARGET is the directory of the new _metadata, or a new file whose name begins with
    _metadata; a path or URL. Nothing is overwritten.

    Flink 1.3 to 1.10 read version 2, and 1.11 and later versions 2 and 3. Newer kinds of state handles stay as they are
    and need a newer release, which is shown. A checkpoint with state that version 2 has no place for is refused. The
    state files stay where they are.

    \b
    Examples:
      spark-ckpt convert /flink/job/chk-17 /flink/job/chk-17/_metadata.v3 --to-version 3
      spark-ckpt convert s3://bucket/savepoint-1 s3://bucket/savepoint-1-v2 --to-version 2 --dry-run
    """
    found = find_checkpoint(source, checkpoint_id)
    session.output.conversion(rewrite(found, target, convert(found.metadata, int(to_version)), dry_run=dry_run))
