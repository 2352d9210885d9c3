"""Functions fit on a screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.definitions import functions
from tests.tidy.planted import made
from tests.tidy.sources import PYTHON_FOLDERS, REPOSITORY, SCALA_FOLDERS, SHIM, files, scala_code, text_of, tree_of

LIMIT = 70
"""Lines of a function, with its docstring and without its decorators."""

EXCEPTIONS = frozenset(
    {
        ("spark_ckpt/cli/commands/export.py", "export_query"),
        ("spark_ckpt/flink/importing/importing.py", "import_flink_savepoint"),
        ("spark_ckpt/operations/rescale.py", "rescale"),
        ("spark_ckpt/session.py", "configure"),
        ("spark_ckpt/storage/creating.py", "create_and_find"),
        ("spark_ckpt/flink/export/exporting.py", "export_savepoint"),
        ("tests/cli/test_json.py", "outputs"),
    }
)
"""Longer functions, as (file, qualified name). None is added: split the function."""

_DEF = re.compile(r"( *)(?:[\w\[\]]+ )*def ([^\s(\[:=]+)")


@cache
def long_functions(root: Path) -> dict[tuple[str, str], int]:
    """Lines of the functions beyond the limit, by file and name."""
    lengths = {
        (path, function.name): function.lines
        for folder in PYTHON_FOLDERS
        for path in files(root, folder, ".py")
        for function in functions(tree_of(path))
    }
    for folder in SCALA_FOLDERS:
        for path in files(root, folder, ".scala"):
            for name, lines in scala_functions(text_of(path)):
                lengths[path, name] = max(lines, lengths.get((path, name), 0))
    return {(path.relative_to(root).as_posix(), name): n for (path, name), n in lengths.items() if n > LIMIT}


def scala_functions(text: str) -> Iterator[tuple[str, int]]:
    """Names and lengths of the functions of a Scala source. scalafmt has indented it, so a function ends before the
    next line that is indented no further than its first one, or with it if that line closes a block.
    """
    lines = scala_code(text).split("\n")
    for first, line in enumerate(lines):
        if found := _DEF.match(line):
            last = first
            for number in range(first + 1, len(lines)):
                code = lines[number].strip()
                is_inside = lines[number].startswith(found.group(1) + " ")
                if code and (is_inside or code[0] in ")}"):
                    last = number
                if code and not is_inside and code[0] != ")":
                    break
            yield found.group(2), last - first + 1


def test_no_function_is_longer_than_the_limit() -> None:
    longer = {key: lines for key, lines in long_functions(REPOSITORY).items() if key not in EXCEPTIONS}
    assert not longer, f"longer than {LIMIT} lines: {longer}"


def test_each_exception_is_still_needed() -> None:
    assert long_functions(REPOSITORY).keys() >= EXCEPTIONS


PLANTED = [
    ("spark_ckpt/module.py", "def planted(a: int) -> None:\n{}", "planted"),
    ("benchmarks/module.py", "@cache\nasync def planted() -> None:\n{}", "planted"),
    ("tests/test_module.py", "class A:\n  def planted(self) -> None:\n{}", "A.planted"),
    (
        "docs/module.py",
        "class A:\n  def outer(self) -> None:\n   def planted() -> None:\n{}\n   pass",
        "A.outer.planted",
    ),
    (f"{SHIM}/scala/A.scala", "object A {{\n  def planted(a: Int): Unit = {{\n{}  }}\n\n  def next = 1\n}}", "planted"),
    (f"{SHIM}/scala/B.scala", "  private def planted(\n      a: Int): Int =\n{}\n  val b = 1", "planted"),
    (f"{SHIM}/scala/C.scala", "  def planted(\n    a: Int\n  ): Int = {{\n{}  }}\n  // }}\n", "planted"),
]
"""A source, with a place for lines of a function's body, and the name of the function."""


@pytest.mark.parametrize(("path", "frame", "name"), PLANTED, ids=[path for path, _, _ in PLANTED])
def test_a_planted_long_function_is_found(path: str, frame: str, name: str, tmp_path: Path) -> None:
    head = len(frame.split(" planted")[1].split("{}")[0].split("\n")) - 1
    tail = 1 if frame.split("{}")[1].startswith("  }") else 0
    inside = LIMIT - head - tail
    for is_long in (False, True):
        root = made(tmp_path / str(is_long), {path: frame.format("    call()\n" * (inside + is_long))})
        assert long_functions(root).get((path, name)) == (LIMIT + 1 if is_long else None)
