"""Sources of the repository, and what the checks read in them."""

from __future__ import annotations

import ast
import gc
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PYTHON_FOLDERS = ("spark_ckpt", "tests", "benchmarks", "docs", "jvm-shim")
ENGINE = "jvm-shim/engine/src/main"
SHIM = "jvm-shim/shim/src/main"
SCALA_FOLDERS = (ENGINE, SHIM)

_GENERATED = frozenset({"target", "__pycache__"})
"""Names of folders with build output below the folders of sources."""

_SCALA_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)


def parsed(text: str, name: str = "<unknown>") -> ast.Module:
    """Syntax tree of a text, made without a collection of garbage.

    Python 3.11 fails if a finalizer, such as py4j's, raises an error meanwhile (CPython issue 106905).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text, name)
    finally:
        if collects:
            gc.enable()


@cache
def files(root: Path, folder: str, *suffixes: str) -> tuple[Path, ...]:
    """Files below a folder of a repository, without build output."""
    found = []
    for parent, folders, names in os.walk(root / folder):
        folders[:] = [name for name in folders if name not in _GENERATED]
        found += [Path(parent, name) for name in names if name.endswith(suffixes)]
    return tuple(sorted(found))


@cache
def text_of(path: Path) -> str:
    """Text of a source."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """Syntax tree of a Python source."""
    return parsed(text_of(path), str(path))


def scala_code(text: str) -> str:
    """Scala with blanks for comments and for the contents of strings; lines and columns stay the same."""
    return _SCALA_TEXT.sub(_blanks, text)


def _blanks(found: re.Match[str]) -> str:
    text = found.group()
    quotes = 0 if text[0] == "/" else 3 if text.startswith('"""') else 1
    return text[:quotes] + re.sub(r"[^\n]", " ", text[quotes : len(text) - quotes]) + text[len(text) - quotes :]


@cache
def references(path: Path) -> tuple[tuple[str, int], ...]:
    """Dotted names that a Python source uses or imports, with their lines. Imported names are resolved: after
    `from time import sleep as pause`, a call of `pause` is a use of `time.sleep`.
    """
    nodes = list(ast.walk(tree_of(path)))
    meaning: dict[str, str] = {}
    found = []
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, bound, meant in _imported(node):
                meaning[bound] = meant
                found.append((name, node.lineno))
    for node in nodes:
        if isinstance(node, (ast.Attribute, ast.Name)) and (name := _dotted(node)):
            first, dot, rest = name.partition(".")
            found.append((meaning.get(first, first) + dot + rest, node.lineno))
    return tuple(found)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """Imported names: the whole name, the name that the import binds, and what that one stands for."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            whole = f"{node.module}.{alias.name}"
            yield whole, alias.asname or alias.name, whole
        elif alias.asname:
            yield alias.name, alias.asname, alias.name
        else:
            top = alias.name.partition(".")[0]
            yield alias.name, top, top


def _dotted(node: ast.expr) -> str:
    """Name such as `a.b.c`; empty for an attribute of another expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := _dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""
