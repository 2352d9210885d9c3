"""Definitions of sources, and the names that sources contain."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.tidy.sources import scala_code, tree_of

_NAME = re.compile(r"\w+")


class Definition(NamedTuple):
    """A function, class, method, constant or type: its qualified name, and its first and last line."""

    name: str
    first: int
    last: int

    @property
    def simple(self) -> str:
        """Name without those of the classes around it."""
        return self.name.rpartition(".")[2]

    @property
    def is_private(self) -> bool:
        """True for a name that only its own module may use; not for methods, which subclasses override."""
        return self.name.startswith("_") and "." not in self.name

    @property
    def lines(self) -> int:
        """Number of lines, without decorators."""
        return self.last - self.first + 1


def functions(body: ast.AST, outer: str = "") -> Iterator[Definition]:
    """All functions and methods of a module, nested ones too."""
    for node in ast.iter_child_nodes(body):
        if not isinstance(node, _WITH_STATEMENTS):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Definition(outer + node.name, node.lineno, node.end_lineno or node.lineno)
        inner = f"{outer}{node.name}." if isinstance(node, _NAMED) else outer
        yield from functions(node, inner)


def definitions(module: ast.Module) -> Iterator[Definition]:
    """What a module defines at its top level, and the methods of its classes."""
    for node in module.body:
        if isinstance(node, _NAMED):
            yield _definition(node.name, node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (_definition(target.id, node) for target in targets if isinstance(target, ast.Name))
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
            yield from (_definition(f"{node.name}.{method.name}", method) for method in methods)


def dead(modules: list[Path], texts: Mapping[Path, str]) -> list[tuple[Path, str]]:
    """Definitions of modules whose names no source has outside of the definition itself: a function that only calls
    itself is dead. A private name of a module has to be in that module again.
    """
    words = {path: Counter(_NAME.findall(text)) for path, text in texts.items()}
    everywhere = Counter[str]()
    for found_words in words.values():
        everywhere.update(found_words)
    return [
        (module, found.name)
        for module in modules
        for found in definitions(tree_of(module))
        if not found.simple.startswith("__")
        if (words[module] if found.is_private else everywhere)[found.simple] <= _own(found, texts[module])
    ]


def scala_definitions(text: str) -> Iterator[str]:
    """Names that a Scala source defines, except in functions: of types, functions and values. What overrides something,
    and setters, which other sources do not name, are left out.
    """
    for found in _SCALA_DEFINITION.finditer(scala_code(text)):
        modifiers, name = found.groups()
        if "override" not in modifiers and not name.endswith("_"):
            yield name


def dead_scala(sources: list[Path], texts: Mapping[Path, str]) -> list[tuple[Path, str]]:
    """Definitions of Scala sources whose names occur once in all texts, beside comments of Scala."""
    words = Counter[str]()
    for path, text in texts.items():
        words.update(_NAME.findall(_SCALA_COMMENT.sub("", text) if path.suffix == ".scala" else text))
    return [(path, name) for path in sources for name in scala_definitions(texts[path]) if words[name] < 2]


_MODIFIER = r"(?:private|protected|final|override|implicit|lazy|sealed|abstract|case)(?:\[\w+\])?"
_SCALA_DEFINITION = re.compile(
    rf"^ {{0,4}}((?:{_MODIFIER} )*)(?:def|val|var|class|object|trait|type) (\w+)", re.MULTILINE
)
_SCALA_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _definition(name: str, node: ast.stmt) -> Definition:
    decorators = node.decorator_list if isinstance(node, _NAMED) else []
    return Definition(name, min([node.lineno, *(each.lineno for each in decorators)]), node.end_lineno or node.lineno)


def _own(found: Definition, text: str) -> int:
    """How often a definition contains its own name."""
    lines = text.splitlines()[found.first - 1 : found.last]
    return _NAME.findall("\n".join(lines)).count(found.simple)
