"""Rewritten metadata as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from spark_ckpt.cli.describe import Json, JsonObject, describe_properties, describe_required_release
from spark_ckpt.cli.rewriting import Rewriting
from spark_ckpt.metadata import Relocation

_T = TypeVar("_T")

_EXAMPLES = 3


def describe_conversion(rewriting: Rewriting) -> JsonObject:
    """What `convert` wrote, and the properties that it left out."""
    return _describe(rewriting) | {"dropped_properties": describe_properties(rewriting.source_properties)}


def describe_relocation(rewriting: Rewriting, relocation: Relocation) -> JsonObject:
    """What `relocate` wrote, and what became of the paths."""
    examples: Json = [{"old": old, "new": new} for old, new in _some(relocation.rewritten)]
    rewritten: Json = {"count": len(relocation.rewritten), "examples": examples}
    return _describe(rewriting) | {"rewritten": rewritten, "left_alone": _paths(relocation.left_alone)}


def _describe(rewriting: Rewriting) -> JsonObject:
    return {
        "source": rewriting.source.path,
        "source_version": rewriting.source.metadata.version,
        "target": rewriting.path,
        "written": rewriting.is_written,
        "size": rewriting.size,
        "version": rewriting.metadata.version,
        "checkpoint_id": rewriting.metadata.checkpoint_id,
        "required_release": describe_required_release(rewriting.metadata),
        "relative": _paths(rewriting.relative),
        "warnings": list(rewriting.warnings),
    }


def _paths(paths: tuple[str, ...]) -> Json:
    return {"count": len(paths), "examples": [*_some(paths)]}


def _some(items: Iterable[_T]) -> list[_T]:
    """A few different ones of many."""
    return list(islice(dict.fromkeys(items), _EXAMPLES))
