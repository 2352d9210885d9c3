"""Test modules do not import each other: shared code lives in support modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of the imported modules and members, including nested imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def in_test_modules(names: Iterator[str]) -> list[str]:
    """Names that belong to a test module of this suite."""
    return [
        name
        for name in names
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split(".")[1:])
    ]


def test_no_module_imports_from_a_test_module() -> None:
    found = {
        str(file.relative_to(HERE)): names
        for file in HERE.rglob("*.py")
        if (names := in_test_modules(imported(ast.parse(file.read_text(encoding="utf-8")))))
    }
    assert not found


@pytest.mark.parametrize(
    "statement",
    [
        "from tests.a.test_b import c",
        "import tests.test_b as b",
        "from tests.a import test_b",
        "def f():\n import tests.test_a",
    ],
)
def test_an_import_from_a_test_module_is_found(statement: str) -> None:
    assert in_test_modules(imported(ast.parse(statement)))
