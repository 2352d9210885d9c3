"""Rewritten metadata as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.cli.rewriting import Rewriting
from spark_ckpt.cli.summary import count, human_size, kind_of, plain, readable_by
from spark_ckpt.metadata import Relocation


def conversion_lines(rewriting: Rewriting) -> Iterator[str]:
    """What `convert` wrote, and the properties that it left out."""
    yield from _lines(rewriting)
    if (dropped := rewriting.source_properties) is not None:
        yield f"without the properties, which version {rewriting.metadata.version} has no place for: {kind_of(dropped)}"


def relocation_lines(rewriting: Rewriting, relocation: Relocation) -> Iterator[str]:
    """What `relocate` wrote, and what became of the paths."""
    yield from _lines(rewriting)
    old, new = relocation.rewritten[0]
    yield _paths(len(relocation.rewritten), "rewritten", f"{old} -> {new}")
    if relocation.left_alone:
        yield _paths(len(relocation.left_alone), "left alone", relocation.left_alone[0])
    if relocation.relative:
        yield _paths(len(relocation.relative), "relative to the directory of the file", relocation.relative[0])


def _lines(rewriting: Rewriting) -> Iterator[str]:
    metadata = rewriting.metadata
    yield (
        f"{'wrote' if rewriting.is_written else 'would write'} {plain(rewriting.path)}: checkpoint "
        f"{metadata.checkpoint_id}, metadata version {metadata.version}, {human_size(rewriting.size)}"
    )
    yield readable_by(metadata)


def _paths(number: int, fate: str, example: str) -> str:
    return f"{count(number, 'path')} {fate}, such as {plain(example)}"
