"""`spark-ckpt convert`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import kind_of
from spark_ckpt.cli.options import Session, checkpoint_options, dry_run_option, json_option, pass_session, path_argument
from spark_ckpt.cli.results.metadata_json import JsonObject, value_json
from spark_ckpt.cli.results.rewrite import RewriteResult, rewrite
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.metadata import convert


@dataclass(frozen=True, slots=True)
class ConvertResult(RewriteResult):
    """Metadata in another format version."""

    def to_json(self) -> JsonObject:
        """The new file, and the properties that its version cannot store."""
        return self.file_json("convert", dropped_properties=value_json(self.rewriting.source_properties))

    def render(self) -> Iterator[str]:
        """The new file, and the properties that its version cannot store."""
        yield from self.file_lines()
        if (dropped := self.rewriting.source_properties) is not None:
            version = self.rewriting.metadata.version
            yield f"dropped properties, which version {version} cannot store: {kind_of(dropped)}"


@click.command("convert")
@path_argument("source")
@path_argument("target")
@click.option("--to-version", type=click.Choice(["2", "3"]), required=True, help="Format version of the new file.")
@checkpoint_options("source")
@dry_run_option
@json_option
@pass_session
def convert_checkpoint(
    session: Session, source: str, target: str, to_version: str, checkpoint_id: int | None, dry_run: bool
) -> None:
    """Rewrite checkpoint metadata in another format version.

    SOURCE is any location that `inspect` accepts. TARGET is the directory of the new _metadata, or a new file with a
    name that begins with _metadata; a path or URL. Nothing is overwritten.

    Flink 1.3 to 1.10 read version 2; Flink 1.11 and later read versions 2 and 3. Newer kinds of state handles are kept
    and require a newer release; the command prints which one. Checkpoints with state that version 2 cannot store are
    rejected. State files are not moved.

    \b
    Examples:
      spark-ckpt convert /flink/job/chk-17 /flink/job/chk-17/_metadata.v3 --to-version 3
      spark-ckpt convert s3://bucket/savepoint-1 s3://bucket/savepoint-1-v2 --to-version 2 --dry-run
    """
    found = CheckpointLocation.open(source).find(checkpoint_id)
    rewriting = rewrite(found, target, convert(found.metadata, int(to_version)), dry_run=dry_run)
    session.output.show(ConvertResult(rewriting))
