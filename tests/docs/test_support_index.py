"""The index of the helpers of the tests names each of them once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.pages import REPOSITORY

SUPPORT = REPOSITORY / "tests" / "support"


def wrong_entries(folder: Path) -> dict[str, int]:
    """Modules by how many lines too many or too few `README.md` has for them."""
    entries = Counter(re.findall(r"^\| `(\w+\.py)` \| .+ \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE))
    entries.subtract(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
    return {name: lines for name, lines in entries.items() if lines}


def test_each_module_has_one_line() -> None:
    assert wrong_entries(SUPPORT) == {}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("| `waiting.py` | waits |", {}),
        ("`waiting.py` waits", {"waiting.py": -1}),
        ("| `waiting.py` |  |\n| `waiting.py` | waits |\n| `waiting.py` | waits |", {"waiting.py": 1}),
        ("| `waiting.py` | waits |\n| `gone.py` | was there |", {"gone.py": 1}),
    ],
)
def test_a_wrong_entry_is_found(line: str, wrong: dict[str, int], tmp_path: Path) -> None:
    for name, text in {
        "README.md": f"| module | gives |\n|---|---|\n{line}\n",
        "waiting.py": "",
        "__init__.py": "",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert wrong_entries(tmp_path) == wrong
