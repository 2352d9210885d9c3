"""Layering rules of the package: a module imports only from its own package or from a lower layer."""

from __future__ import annotations

import ast
import inspect
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.tidy.sources import parsed

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "spark_ckpt"

LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split(" | "))
    for layer in (
        "__init__ | __main__",
        "notebook | testing",
        "cli | bridge",
        "bootstrap",
        "reading | session | migrate | edit | evolution | elasticity",
        "flink.export | flink.importing",
        "flink.tables",
        "flink.types",
        "flink.streams | flink.rocksdb",
        "flink",
        "state_writing",
        "coordinator | operations | state",
        "recovery | rescaling",
        "location | driver_jvm",
        "compaction",
        "messages",
        "checkpoint",
        "spark_files | config",
        "format | completed",
        "metadata | storage",
        "clock | features | figures | jars | progress",
        "errors",
        "redaction",
    )
)
"""Layers from highest to lowest. Packages and modules of one layer do not import each other."""

WINGS = frozenset({"flink"})
"""Packages whose own packages have layers."""

ONLY_BY: dict[str, frozenset[str]] = {
    "flink": frozenset({"__init__", "cli", "reading"}),
    "migrate": frozenset({"__init__", "cli"}),
    "bootstrap": frozenset({"__init__", "testing"}),
    "edit": frozenset({"__init__", "bootstrap", "cli", "testing"}),
    "evolution": frozenset({"__init__", "bootstrap", "cli"}),
    "elasticity": frozenset({"__init__"}),
    "coordinator": frozenset({"bridge"}),
}
"""Importers of packages that no other package imports, whatever its layer. So the core never imports Flink's wing."""

ONLY: dict[str, frozenset[str]] = {
    "metadata": frozenset({"errors", "redaction"}),
    "flink.streams": frozenset({"errors", "format", "metadata", "redaction"}),
    "flink.rocksdb": frozenset({"errors", "redaction"}),
}
"""Allowed imports of packages that may use only some of the lower layers."""

EARLIER_NAMES = {
    "metadata.streams.serializers": "flink.streams.serializers",
    "metadata.streams": "flink.streams",
    "state.flink": "flink.tables.read",
}
"""Modules that only give their earlier name to another one, and count as that one."""

VERSION = "__version__"
"""Only name that modules may import from the root package."""

EXCEPTIONS: frozenset[tuple[str, str]] = frozenset()
"""Known violations as (importing module, imported module)."""


class Import(NamedTuple):
    """Import statement: both module names without `spark_ckpt.`, and the line number."""

    importer: str
    imported: str
    line: int


def test_each_package_and_module_has_a_layer() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    for wing in WINGS:
        there |= {f"{wing}.{path.parent.name}" for path in (PACKAGE / wing).glob("*/__init__.py")}
    assert there == frozenset[str]().union(*LAYERS)


def test_imports_lead_to_lower_layers_only() -> None:
    violations = [found for found in imports() if found[:2] not in EXCEPTIONS and not is_allowed(found)]
    assert not violations, "\n".join(f"{who}:{line} imports {what}" for who, what, line in violations)


def test_each_exception_is_still_needed() -> None:
    needed = {found[:2] for found in imports() if not is_allowed(found)}
    assert needed >= EXCEPTIONS


def test_an_import_of_a_higher_layer_is_a_violation() -> None:
    assert is_allowed(Import("cli.main", "state.read", 1))
    assert is_allowed(Import("state.read", "state.merge", 1))
    assert not is_allowed(Import("state.read", "operations.gc", 1))
    assert not is_allowed(Import("location.find", "operations.gc", 1))
    assert not is_allowed(Import("cli.main", "coordinator.job", 1))
    assert not is_allowed(Import("coordinator.job", "operations.gc", 1))
    assert not is_allowed(Import("operations.gc", "migrate.earlier_state", 1))
    assert not is_allowed(Import("session", "migrate.locations", 1))
    assert not is_allowed(Import("compaction.plan", "coordinator.job", 1))
    assert not is_allowed(Import("metadata.files", "clock", 1))
    assert not is_allowed(Import("storage.local", "", 1))


def test_an_import_of_flink_by_the_core_is_a_violation() -> None:
    assert is_allowed(Import("reading", "flink.tables.find", 1))
    assert is_allowed(Import("flink.tables.read", "flink.streams", 1))
    assert is_allowed(Import("flink.importing.rows", "state.rows", 1))
    assert not is_allowed(Import("coordinator.job", "flink.tables.find", 1))
    assert not is_allowed(Import("session", "flink.export.exporting", 1))
    assert not is_allowed(Import("state.read", "flink.tables.read", 1))
    assert not is_allowed(Import("state.read", "flink", 1))
    assert not is_allowed(Import("state.read", "state.flink", 1))
    assert not is_allowed(Import("metadata.files", "metadata.streams", 1))
    assert not is_allowed(Import("flink.streams.headers", "flink.tables.read", 1))
    assert not is_allowed(Import("flink.streams.headers", "state.rows", 1))
    assert not is_allowed(Import("flink.tables.read", "coordinator.job", 1))


def test_a_module_of_an_earlier_name_contains_only_imports() -> None:
    for earlier, name in EARLIER_NAMES.items():
        module, now = import_module(f"{PACKAGE.name}.{earlier}"), import_module(f"{PACKAGE.name}.{name}")
        body = parsed(inspect.getsource(module)).body
        assert all(isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign) for node in body)
        assert module.__doc__ == f"Earlier name of `{now.__name__}`."
        assert module.__all__
        assert all(getattr(module, each) is getattr(now, each) for each in module.__all__)


def is_allowed(found: Import) -> bool:
    """True if the import respects the layers."""
    importer, imported = unit_of(found.importer), unit_of(found.imported)
    if importer == imported:
        return True
    top, other = top_of(importer), top_of(imported)
    if top != other and top not in ONLY_BY.get(other, {top}):
        return False
    if importer in ONLY and imported not in ONLY[importer]:
        return False
    return layer_of(importer) < layer_of(imported)


def imports() -> Iterator[Import]:
    """All imports within the package, except of its version; includes `TYPE_CHECKING` and function-level imports."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        importer = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            for name in imported_names(node):
                yield Import(importer, name, getattr(node, "lineno", 0))


def imported_names(node: ast.AST) -> list[str]:
    """Modules of the package imported by a statement, without `spark_ckpt.`; empty for the root itself."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        module = node.module or ""
        names = [f"{module}.{a.name}" for a in node.names] if module == PACKAGE.name else [module]
    else:
        return []
    ours = [name.partition(".")[2] for name in names if name.partition(".")[0] == PACKAGE.name]
    return [name for name in ours if name != VERSION]


def unit_of(module: str) -> str:
    """Package or module that has a layer, of a dotted name."""
    for earlier, name in EARLIER_NAMES.items():
        if module == earlier or module.startswith(f"{earlier}."):
            module = name
            break
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] in WINGS else parts[0] or "__init__"


def top_of(unit: str) -> str:
    """Top-level package or module of a dotted name."""
    return unit.partition(".")[0]


def layer_of(unit: str) -> int:
    """Index of a layer; 0 is the highest."""
    return next(index for index, layer in enumerate(LAYERS) if unit in layer)


def import_graph() -> dict[str, Counter[str]]:
    """Number of imports by importing and imported package or module."""
    graph: dict[str, Counter[str]] = defaultdict(Counter)
    for found in imports():
        importer, imported = unit_of(found.importer), unit_of(found.imported)
        if importer != imported:
            graph[importer][imported] += 1
    return graph


def module_sizes() -> dict[str, int]:
    """Number of lines of each module."""
    return {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }


def main() -> None:
    """Prints the graph of imports by layer, highest first, and the module sizes: a guide, not a limit."""
    graph = import_graph()
    for layer in LAYERS:
        for importer in sorted(layer):
            print(f"{importer}: {', '.join(f'{to} {count}' for to, count in sorted(graph[importer].items()))}")
    print()
    sizes = module_sizes()
    lines = sorted(sizes.values())
    print(
        f"{len(lines)} modules, {sum(lines)} lines; median {statistics.median(lines):g} (guide: below 150), "
        f"90th percentile {lines[len(lines) * 9 // 10]} (guide: below 350)"
    )
    for name, count in sorted(sizes.items(), key=lambda item: -item[1])[:5]:
        print(f"{count:6} {name}")


if __name__ == "__main__":
    test_each_package_and_module_has_a_layer()
    test_imports_lead_to_lower_layers_only()
    test_each_exception_is_still_needed()
    main()
