"""The library, the engine and the shim define nothing that no other line of the repository names."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.cli.command_table import COMMANDS
from tests.tidy.definitions import dead, dead_scala
from tests.tidy.planted import made
from tests.tidy.sources import REPOSITORY, SCALA_FOLDERS, SHIM, files, references, text_of

HERE = Path(__file__).parent  # names that only these checks have do not count
SUFFIXES = (".py", ".scala", ".java", ".md", ".toml", ".xml", ".yml")
FOLDERS = ("spark_ckpt", "tests", "benchmarks", "docs", "conf", "jvm-shim")
OTHERS = ("README.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml", "pyproject.toml")

CALLED_BY_OTHERS = frozenset(
    {
        ("spark_ckpt/cli/main.py", "_Program.format_commands"),
        ("spark_ckpt/storage/azure_client.py", "OneTryAzureFileSystem.do_connect"),
        ("spark_ckpt/storage/s3_client.py", "OneTryS3FileSystem.get_s3"),
    }
)
"""Methods that override one of another library, which calls them."""

EARLIER_NAMES = frozenset({"spark_ckpt.metadata.streams.serializers", "spark_ckpt.state.flink"})
"""Modules that programs of users import under a name that documentation of earlier releases has."""

PLUGINS = frozenset({"spark_ckpt.testing.fixtures"})
"""Modules that pytest loads by a name in a user's `conftest.py`."""


COMMAND_MODULES = frozenset(f"spark_ckpt.cli.commands.{place.module}" for place in COMMANDS.values())
"""Modules that are loaded by the name of their command."""


def texts_of(root: Path) -> dict[Path, str]:
    """Texts that may name a definition."""
    sources = [path for folder in FOLDERS for path in files(root, folder, *SUFFIXES) if path.parent != HERE]
    services = files(root, f"{SHIM}/resources/META-INF", "")
    others = [root / name for name in OTHERS if (root / name).exists()]
    return {path: text_of(path) for path in [*sources, *services, *others]}


def found_in(root: Path) -> set[tuple[str, str]]:
    """Dead definitions of the library in a repository."""
    found = dead(list(files(root, "spark_ckpt", ".py")), texts_of(root))
    return {(module.relative_to(root).as_posix(), name) for module, name in found}


def found_in_scala(root: Path) -> set[tuple[str, str]]:
    """Dead definitions of the engine and the shim in a repository."""
    sources = [path for folder in SCALA_FOLDERS for path in files(root, folder, ".scala")]
    found = dead_scala(sources, texts_of(root))
    return {(source.relative_to(root).as_posix(), name) for source, name in found}


def never_imported(root: Path) -> set[str]:
    """Modules of the library that no other one imports."""
    paths = files(root, "spark_ckpt", ".py")
    imported = {name for path in paths for name, _ in references(path)}
    prefixes = {".".join(name.split(".")[:length]) for name in imported for length in range(1, name.count(".") + 2)}
    modules = {".".join(path.relative_to(root).with_suffix("").parts) for path in paths}
    return {module for module in modules - prefixes if not module.endswith(("__init__", "__main__"))}


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
    root = made(tmp_path, {"spark_ckpt/module.py": source, "tests/test_other.py": "_shared = 2"})
    assert found_in(root) == {("spark_ckpt/module.py", name)}


@pytest.mark.parametrize("user", ["tests/test_module.py", "docs/page.md", "jvm-shim/Shim.scala", "spark_ckpt/other.py"])
def test_a_definition_that_another_file_names_is_not_dead(user: str, tmp_path: Path) -> None:
    assert found_in(made(tmp_path, {"spark_ckpt/module.py": "def used() -> None: ...", user: "used()"})) == set()


def test_every_module_is_imported() -> None:
    assert never_imported(REPOSITORY) - COMMAND_MODULES == EARLIER_NAMES | PLUGINS


def test_a_planted_module_that_nothing_imports_is_found(tmp_path: Path) -> None:
    sources = {
        "spark_ckpt/a.py": "",
        "spark_ckpt/b.py": "from spark_ckpt import c",
        "spark_ckpt/c.py": "import spark_ckpt.b",
    }
    assert never_imported(made(tmp_path, sources)) == {"spark_ckpt.a"}


def test_every_definition_in_scala_is_named_elsewhere() -> None:
    assert found_in_scala(REPOSITORY) == set()


@pytest.mark.parametrize(
    "source",
    [
        "object LeftOver",
        "/** [[LeftOver]] */\nprivate[ckpt] final class LeftOver // of LeftOver",
        "object Used {\n  private val LeftOver = 1\n}\nUsed",
        "trait Used {\n  object Inner {\n    def LeftOver(a: Int): Int = 1\n  }\n  Inner\n}\nUsed",
    ],
)
def test_a_planted_dead_definition_in_scala_is_found(source: str, tmp_path: Path) -> None:
    path = f"{SHIM}/scala/A.scala"
    assert found_in_scala(made(tmp_path, {path: source})) == {(path, "LeftOver")}


@pytest.mark.parametrize(
    "sources",
    [
        {"A.scala": "object Used", "B.scala": "Used"},
        {"A.scala": "object Used", "../resources/META-INF/services/a.Plugin": "a.Used"},
        {"A.scala": "class Used {\n  override def close(): Unit = ()\n  def used_=(a: Int): Unit = ()\n}\nUsed"},
        {"A.scala": 'object Used {\n  val text = """\n  def inText = 1"""\n  text\n}\nUsed'},
    ],
)
def test_a_definition_in_scala_that_is_used_is_not_dead(sources: dict[str, str], tmp_path: Path) -> None:
    root = made(tmp_path, {f"{SHIM}/scala/{name}": text for name, text in sources.items()})
    assert found_in_scala(root) == set()
