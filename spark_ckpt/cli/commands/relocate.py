"""`spark-ckpt relocate`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, checkpoint_options, dry_run_option, json_option, pass_session, path_argument
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.results.rewrite import RewriteResult, different, paths_json, rewrite
from spark_ckpt.figures import count
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.metadata import Relocation, relocate


@dataclass(frozen=True, slots=True)
class RelocateResult(RewriteResult):
    """Metadata for moved state files.

    Args:
        relocation: rewritten and unchanged paths.
    """

    relocation: Relocation

    def to_json(self) -> JsonObject:
        """The new file, and its paths: rewritten, unchanged and relative."""
        relocation = self.relocation
        rewritten = described(
            "rewritten_paths", count=len(relocation.rewritten), examples=different(relocation.rewritten)
        )
        return self.file_json("relocate", rewritten=rewritten, left_alone=paths_json(relocation.left_alone))

    def render(self) -> Iterator[str]:
        """The new file, and its paths: rewritten, unchanged and relative."""
        yield from self.file_lines()
        relocation, relative = self.relocation, self.rewriting.relative
        old, new = relocation.rewritten[0]
        yield _paths(len(relocation.rewritten), "rewritten", f"{old} -> {new}")
        if relocation.left_alone:
            yield _paths(len(relocation.left_alone), "unchanged", relocation.left_alone[0])
        if relative:
            yield _paths(len(relative), "relative to the directory of the file", relative[0])


def _paths(number: int, fate: str, example: str) -> str:
    return f"{count(number, 'path')} {fate}, such as {plain(example)}"


@click.command("relocate")
@click.argument("old_prefix")
@click.argument("new_prefix")
@path_argument("source")
@path_argument("target")
@checkpoint_options("source")
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
    """Rewrite checkpoint metadata for moved state files.

    In the new file NEW_PREFIX replaces OLD_PREFIX in every path that begins with it. Both are absolute paths or URLs.
    Paths relative to the directory of _metadata are unchanged. The command does not move state files; move them
    yourself.

    SOURCE is any location that `inspect` accepts. TARGET is the directory of the new _metadata, or a new file with a
    name that begins with _metadata; a path or URL. Nothing is overwritten.

    \b
    Examples:
      spark-ckpt relocate hdfs://nn:9000/flink s3://bucket/flink chk-17 s3://bucket/flink/job/chk-17
      spark-ckpt relocate /old /new /old/job/chk-17 /new/job/chk-17 --dry-run
    """
    found = CheckpointLocation.open(source).find(checkpoint_id)
    relocation = relocate(found.metadata, old_prefix, new_prefix)
    rewriting = rewrite(found, target, relocation.metadata, dry_run=dry_run)
    session.output.show(RelocateResult(rewriting, relocation))
