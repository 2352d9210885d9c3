"""`spark-ckpt relocate`."""

from __future__ import annotations

import click

from spark_ckpt.cli.options import Session, dry_run_option, id_option, json_option, pass_session
from spark_ckpt.cli.rewriting import rewrite
from spark_ckpt.locations.location import find_checkpoint
from spark_ckpt.metadata import relocate


@click.command("relocate")
@click.argument("old_prefix")
@click.argument("new_prefix")
@click.argument("source")
@click.argument("target")
@id_option
@dry_run_option
@json_option
@pass_session
def relocate_checkpoint(
    session: Session,
    old_prefix: str,
    new_prefix: str,
    source: str,
    target: str,
    checkpoint_id: int | None,
    dry_run: bool,
) -> None:
    """Write the metadata of a checkpoint anew for state files that lie in another place.

    Every path that begins with OLD_PREFIX begins with NEW_PREFIX in the new file; both are absolute paths or URLs.
    Paths that count from the directory of _metadata stay as they are. No state file is moved: do that yourself.

    SOURCE is what `inspect` takes. TARGET is the directory of the new _metadata, or a new file whose name begins with
    _metadata; a path or URL. Nothing is overwritten.

    \b
    Examples:
      spark-ckpt relocate hdfs://nn:9000/flink s3://bucket/flink chk-17 s3://bucket/flink/job/chk-17
      spark-ckpt relocate /old /new /old/job/chk-17 /new/job/chk-17 --dry-run
    """
    found = find_checkpoint(source, checkpoint_id)
    relocation = relocate(found.metadata, old_prefix, new_prefix)
    session.output.relocation(rewrite(found, target, relocation.metadata, dry_run=dry_run), relocation)
