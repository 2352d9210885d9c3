"""The generated format constants of the shim and the engine match the formats that this package writes."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from spark_ckpt.format.segment_flags import FLAGS
from tests.support.provider import REPOSITORY


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = REPOSITORY / "jvm-shim" / "generate_format.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_files_are_current(generator: ModuleType) -> None:
    for path, source in generator.scala_sources().items():
        assert source == path.read_text(encoding="utf-8"), "run 'make generate'"


def test_the_page_of_formats_has_each_flag_of_segments() -> None:
    page = (REPOSITORY / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE)
    assert rows == [(str(flag.bit), flag.name) for flag in FLAGS]


def test_java_reads_the_patterns_as_python_does(generator: ModuleType) -> None:
    """Patterns use only literals, ASCII classes, groups and greedy quantifiers: no \\d, no ., no flags, no anchors."""
    quantifier = r"(?:\?|\*|\+|\{[0-9]+(?:,[0-9]+)?\})"
    alike = re.compile(rf"(?:(?:[A-Za-z0-9_/-]|\\\.|\[[A-Za-z0-9_.-]+\]|\)){quantifier}?|\((?:\?:)?)+")
    assert generator.PATTERNS
    for name, (pattern, _) in generator.PATTERNS.items():
        assert pattern.flags == re.UNICODE, name
        assert alike.fullmatch(pattern.pattern), name
    for other in (r"chk-\d+", "shared/.", "(?i)x", "^x", "x+?", "x++", "[^x]", "a|b"):
        assert not alike.fullmatch(other), other


def test_no_source_of_the_jvm_repeats_a_constant(generator: ModuleType) -> None:
    """Format constants appear only in the generated files."""
    of_modules = [set((generator.JVM / module / "src/main").rglob("*.scala")) for module in ("engine", "shim")]
    assert all(len(sources) > 50 for sources in of_modules)
    sources = set().union(*of_modules) - set(generator.scala_sources())
    repeated = re.compile(r'0x4960672D|0xC96B1696|0x434B4247|"spark-batch"|"shared/|"chk-', re.IGNORECASE)
    assert not [source.name for source in sources if repeated.search(source.read_text(encoding="utf-8"))]
