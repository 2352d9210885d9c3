"""The library defines nothing that no other line of the repository names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.definitions import dead
from tests.tidy.sources import REPOSITORY, files, text_of

HERE = Path(__file__).parent  # names that only these checks have do not count
SUFFIXES = (".py", ".scala", ".java", ".md", ".toml", ".xml", ".yml")
FOLDERS = ("spark_ckpt", "tests", "benchmarks", "docs", "conf", "jvm-shim")
OTHERS = ("README.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml", "pyproject.toml")

CALLED_BY_OTHERS = frozenset({("spark_ckpt/storage/s3_client.py", "OneTryS3FileSystem.get_s3")})
"""Methods that override one of another library, which calls them."""


def found_in(root: Path, folders: tuple[str, ...] = FOLDERS) -> set[tuple[str, str]]:
    """Dead definitions of the library in a repository."""
    sources = [path for folder in folders for path in files(root, folder, *SUFFIXES) if path.parent != HERE]
    texts = {path: text_of(path) for path in [*sources, *(root / name for name in OTHERS if (root / name).exists())]}
    found = dead(list(files(root, "spark_ckpt", ".py")), texts)
    return {(module.relative_to(root).as_posix(), name) for module, name in found}


def test_every_definition_is_named_elsewhere() -> None:
    assert found_in(REPOSITORY) == CALLED_BY_OTHERS


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def left_over() -> None:\n    left_over()", "left_over"),
        ("@cache\ndef left_over() -> None: ...", "left_over"),
        ("class LeftOver:\n    def copy(self) -> LeftOver: ...\ncopy", "LeftOver"),
        ("class Used:\n    def left_over(self) -> None: ...\nUsed", "Used.left_over"),
        ("LEFT_OVER: int = 1", "LEFT_OVER"),
        ("LEFT_OVER = 1", "LEFT_OVER"),
        ("_shared = 1", "_shared"),
    ],
)
def test_a_planted_dead_definition_is_found(source: str, name: str, tmp_path: Path) -> None:
    for path, text in {"spark_ckpt/module.py": source, "tests/test_other.py": "_shared = 2"}.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert found_in(tmp_path) == {("spark_ckpt/module.py", name)}


@pytest.mark.parametrize("user", ["tests/test_module.py", "docs/page.md", "jvm-shim/Shim.scala", "spark_ckpt/other.py"])
def test_a_definition_that_another_file_names_is_not_dead(user: str, tmp_path: Path) -> None:
    for path, text in {"spark_ckpt/module.py": "def used() -> None: ...", user: "used()"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert found_in(tmp_path) == set()
