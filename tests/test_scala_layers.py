"""Layering rules of the JVM's packages: a package imports only lower ones.

They are checked in the text of the sources. Run as a program, it checks them too, and prints the import graph:

    python -m tests.test_scala_layers
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tidy.planted import made
from tests.tidy.sources import ENGINE, REPOSITORY, SHIM, files, scala_code, text_of

COMMENT = "package.scala"
"""File of a package that has nothing but its comment."""


@dataclass(frozen=True)
class Module:
    """Module in Scala.

    Attributes:
        folder: its sources, below the repository.
        root: its root package.
        layers: packages below the root from highest to lowest, an empty name for the root. Those of one layer,
            separated by `|`, do not import each other.
        lower: names that imports outside the project begin with; anything, if there are none.
        exceptions: known violations as (importing package, imported package), without the root.
    """

    folder: str
    root: str
    layers: tuple[str, ...]
    lower: tuple[str, ...] = ()
    exceptions: frozenset[tuple[str, str]] = field(default=frozenset())

    def short(self, package: str) -> str:
        """Name of a package below the root."""
        return package.removeprefix(self.root).removeprefix(".")

    def layer_of(self, package: str) -> int:
        """Index of a package's layer; 0 is the highest."""
        return next(i for i, layer in enumerate(self.layers) if self.short(package) in layer.split(" | "))


ENGINE_MODULE = Module(
    ENGINE,
    "io.github.sparkckpt.engine",
    ("backend", "compaction", "restore", "buffer", "table", "pages", "segment", "bytes"),
    lower=("java.", "scala.", "org.apache.spark.unsafe.", "com.github.luben.zstd.", "net.jpountz.lz4.", "org.slf4j."),
)
SHIM_MODULE = Module(
    SHIM,
    "org.apache.spark.sql.ckpt",
    (
        "",
        "transfer | testing",
        "driver",
        "store | metrics",
        "compaction | locate",
        "client | families | files",
        "bridge | logs | meaning | ui",
        "compat",
        "protocol",
        "common",
    ),
    # The tab posts an event that event logs name by its class.
    exceptions=frozenset({("ui", "")}),
)
MODULES = (SHIM_MODULE, ENGINE_MODULE)
"""From the highest to the lowest: a module imports packages of its own and of lower modules."""

ROOTS = "|".join(re.escape(module.root) for module in MODULES)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+((?:[^\n{]|\{[^}]*\})+)", re.MULTILINE)
_QUALIFIED = re.compile(rf"(?<![\w.])(?:{ROOTS})(?:\.\w+)+")
_PACKAGE = re.compile(r"^package[ \t]+(\S+)", re.MULTILINE)
_CLAUSE = re.compile(r"((?:\w+\.)*)(?:(\w+)|\{([^}]*)\})$")


class Import(NamedTuple):
    """Import of a package of ours, or a name of it in the code: both packages, and where."""

    importer: str
    imported: str
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.line}: {self.importer} imports {self.imported}"


@cache
def packages(root: Path, module: Module) -> dict[str, tuple[Path, ...]]:
    """Sources of each package of a module."""
    found: dict[str, list[Path]] = {}
    for path in files(root, module.folder, ".scala"):
        package = package_of(path)
        if (package + ".").startswith(module.root + "."):
            found.setdefault(package, []).append(path)
    return {package: tuple(paths) for package, paths in sorted(found.items())}


def package_of(path: Path) -> str:
    """Package of a source."""
    clause = _PACKAGE.search(scala_code(text_of(path)))
    return clause[1] if clause else ""


def names(code: str) -> Iterator[tuple[str, int]]:
    """Full names in the import clauses of a source without comments, and their lines."""
    for statement in _IMPORT.finditer(code):
        line = code.count("\n", 0, statement.start(1)) + 1
        for clause in re.split(r",(?![^{]*\})", re.sub(r"\s+", "", statement[1].replace("=>", " => "))):
            if parts := _CLAUSE.match(clause):
                for name in (parts[2] or parts[3]).split(","):
                    yield parts[1] + re.split(r"=>", name)[0], line


def imports(root: Path, module: Module) -> Iterator[Import]:
    """Uses of other packages of ours in a module."""
    ours = set(chain.from_iterable(packages(root, each) for each in MODULES))
    for package, paths in packages(root, module).items():
        below = {name.removeprefix(package + ".") for name in ours if name.startswith(package + ".")}
        for path in paths:
            code = scala_code(text_of(path))
            used = {*names(code), *_qualified(_IMPORT.sub(_blank, _PACKAGE.sub(_blank, code)), package, below)}
            for name, line in sorted(used):
                whole = f"{package}.{name}" if name.partition(".")[0] in below else name
                if (imported := _owner(whole, ours)) and imported != package:
                    yield Import(package, imported, path.relative_to(root), line)


def _qualified(code: str, package: str, below: set[str]) -> Iterator[tuple[str, int]]:
    """Names with their packages in the code, whole or as seen from a package with others below it."""
    patterns = [_QUALIFIED]
    if below:
        patterns.append(re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(below))})\.[A-Z]\w*"))
    for pattern in patterns:
        for found in pattern.finditer(code):
            yield found[0], code.count("\n", 0, found.start()) + 1


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _owner(name: str, ours: set[str]) -> str:
    """Longest package of ours that a full name begins with; empty if there is none."""
    parts = name.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in ours), "")


def module_of(package: str) -> Module:
    return next(module for module in MODULES if (package + ".").startswith(module.root + "."))


def is_allowed(found: Import) -> bool:
    """True if the import respects the layers."""
    importer, imported = module_of(found.importer), module_of(found.imported)
    if importer is not imported:
        return MODULES.index(importer) < MODULES.index(imported)
    return importer.layer_of(found.importer) < importer.layer_of(found.imported)


def is_exception(found: Import) -> bool:
    module = module_of(found.importer)
    return (module.short(found.importer), module.short(found.imported)) in module.exceptions


def violations(root: Path) -> list[str]:
    """Imports of packages that are not lower."""
    found = chain.from_iterable(imports(root, module) for module in MODULES)
    return [str(each) for each in found if not is_allowed(each) and not is_exception(each)]


def strangers(root: Path) -> list[str]:
    """Imports of what is not ours by a module that may import little of that."""
    found = []
    for module in MODULES:
        if module.lower:
            for package, paths in packages(root, module).items():
                below = {name.removeprefix(package + ".") for name in packages(root, module)}
                for path in paths:
                    for name, line in names(scala_code(text_of(path))):
                        is_ours = name.startswith(module.root + ".") or name[0].isupper() or name.split(".")[0] in below
                        if "." in name and not is_ours and not name.startswith(module.lower):
                            found.append(f"{path.relative_to(root).as_posix()}:{line}: {name}")
    return found


def without_comment(root: Path) -> list[str]:
    """Packages without a comment of their own."""
    found = []
    for module in MODULES:
        for package, paths in packages(root, module).items():
            texts = [text_of(path) for path in paths if path.name == COMMENT]
            comment = rf"^// SPDX.+\n/\*\*\n?(?s:.+)\*/\npackage {re.escape(package)}\n$"
            if not any(re.search(comment, text) for text in texts):
                found.append(package)
    return found


def misplaced(root: Path) -> list[str]:
    """Sources in another folder than their package's."""
    return [
        path.relative_to(root).as_posix()
        for module in MODULES
        for package, paths in packages(root, module).items()
        for path in paths
        if not path.parent.as_posix().endswith("/" + package.replace(".", "/"))
    ]


def test_each_package_has_a_layer() -> None:
    for module in MODULES:
        there = {module.short(package) for package in packages(REPOSITORY, module)}
        assert there == set(chain.from_iterable(layer.split(" | ") for layer in module.layers))


def test_imports_lead_to_lower_packages_only() -> None:
    assert violations(REPOSITORY) == []


def test_each_exception_is_still_needed() -> None:
    for module in MODULES:
        found = [each for each in imports(REPOSITORY, module) if not is_allowed(each)]
        needed = {(module.short(each.importer), module.short(each.imported)) for each in found}
        assert needed >= module.exceptions


def test_the_engine_imports_nothing_of_spark_but_its_memory_access() -> None:
    assert strangers(REPOSITORY) == []


def test_each_package_has_a_comment() -> None:
    assert without_comment(REPOSITORY) == []


def test_each_source_is_in_the_folder_of_its_package() -> None:
    assert misplaced(REPOSITORY) == []


def source(module: Module, package: str, text: str) -> dict[str, str]:
    """A source in a package below the root of a module, by its path."""
    whole = f"{module.root}.{package}".strip(".")
    return {f"{module.folder}/scala/{whole.replace('.', '/')}/Planted.scala": f"package {whole}\n\n{text}\n"}


BELOW = {
    **source(ENGINE_MODULE, "bytes", "object Bytes"),
    **source(ENGINE_MODULE, "table", "class Table"),
    **source(ENGINE_MODULE, "backend", "class Backend"),
    **source(SHIM_MODULE, "protocol", "class Ack"),
    **source(SHIM_MODULE, "driver", "class Driver"),
    **source(SHIM_MODULE, "ui", "class Page"),
}


@pytest.mark.parametrize(
    ("module", "package", "text"),
    [
        (ENGINE_MODULE, "pages", "import io.github.sparkckpt.engine.table.Table"),
        (ENGINE_MODULE, "pages", "import io.github.sparkckpt.engine.table._"),
        (
            ENGINE_MODULE,
            "pages",
            "import io.github.sparkckpt.engine.bytes.Bytes, io.github.sparkckpt.engine.table.Table",
        ),
        (ENGINE_MODULE, "pages", "import io.github.sparkckpt.engine.table.{\n  Column,\n  Table => T}"),
        (ENGINE_MODULE, "pages", "import io.github.sparkckpt.engine.{bytes, table}"),
        (ENGINE_MODULE, "pages", "class A {\n  import io.github.sparkckpt.engine.table.Table._\n}"),
        (ENGINE_MODULE, "pages", "class A(of: io.github.sparkckpt.engine.table.Table)"),
        (ENGINE_MODULE, "bytes", "import org.apache.spark.sql.ckpt.protocol.Ack"),
        (SHIM_MODULE, "protocol", "import org.apache.spark.sql.ckpt.driver.Driver"),
        (SHIM_MODULE, "bridge", "import org.apache.spark.sql.ckpt.driver.Driver"),
    ],
)
def test_a_planted_import_of_a_higher_package_is_found(module: Module, package: str, text: str, tmp_path: Path) -> None:
    found = violations(made(tmp_path, {**BELOW, **source(module, package, text)}))
    assert found
    assert all(f"{module.root}.{package} imports " in each for each in found)


@pytest.mark.parametrize(
    ("module", "package", "text"),
    [
        (ENGINE_MODULE, "table", "import io.github.sparkckpt.engine.bytes.Bytes\nimport java.util.Arrays"),
        (ENGINE_MODULE, "pages", "// import io.github.sparkckpt.engine.table.Table\n/** [[table.Table]] */\nclass A"),
        (ENGINE_MODULE, "pages", 'object A {\n  val name = "io.github.sparkckpt.engine.table.Table"\n}'),
        (ENGINE_MODULE, "backend", "class A {\n  import Table._\n  val table = Table.table\n}"),
        (SHIM_MODULE, "protocol", "import io.github.sparkckpt.engine.backend.Backend"),
        (SHIM_MODULE, "", "class A(driver: Driver) {\n  driver.close()\n  driver.Driver\n}"),
    ],
)
def test_an_import_of_a_lower_package_is_none(module: Module, package: str, text: str, tmp_path: Path) -> None:
    root = made(tmp_path, {**BELOW, **source(module, package, text)})
    assert violations(root) == []
    assert strangers(root) == []


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.spark.sql.catalyst.expressions.UnsafeRow",
        "org.apache.spark.TaskContext",
        "org.apache.{hadoop, spark}",
        "org.apache.hadoop.fs.Path",
    ],
)
def test_a_planted_import_of_spark_by_the_engine_is_found(name: str, tmp_path: Path) -> None:
    root = made(tmp_path, source(ENGINE_MODULE, "bytes", f"import org.apache.spark.unsafe.Platform\nimport {name}"))
    assert strangers(root)


def test_a_package_without_a_comment_is_found(tmp_path: Path) -> None:
    root = made(tmp_path, source(ENGINE_MODULE, "bytes", "/** A comment, but of the class. */\nclass A"))
    assert without_comment(root) == ["io.github.sparkckpt.engine.bytes"]
    assert misplaced(root) == []


def test_a_source_in_the_folder_of_another_package_is_found(tmp_path: Path) -> None:
    ((path, text),) = source(ENGINE_MODULE, "bytes", "class A").items()
    assert misplaced(made(tmp_path, {path.replace("bytes", "pages"): text}))


def graph() -> Iterator[str]:
    """Lines on all packages: sizes, and the packages that they import, with the number of files that do."""
    for module in MODULES:
        for layer in module.layers:
            for short in layer.split(" | "):
                package = f"{module.root}.{short}".rstrip(".")
                paths = packages(REPOSITORY, module)[package]
                lines = sum(len(text_of(path).splitlines()) for path in paths)
                uses = {
                    (found.imported, found.path) for found in imports(REPOSITORY, module) if found.importer == package
                }
                counts = Counter(_label(imported) for imported, _ in uses)
                imported = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
                yield f"{_label(package):18} {len(paths):4} files {lines:6} lines  -> {imported or '-'}"


def _label(package: str) -> str:
    return package.removeprefix(module_of(package).root.rpartition(".")[0] + ".")


def main() -> None:
    """Prints the import graph, packages from the highest to the lowest."""
    print("\n".join(graph()))


if __name__ == "__main__":
    test_each_package_has_a_layer()
    test_imports_lead_to_lower_packages_only()
    test_each_exception_is_still_needed()
    test_the_engine_imports_nothing_of_spark_but_its_memory_access()
    test_each_package_has_a_comment()
    test_each_source_is_in_the_folder_of_its_package()
    main()
