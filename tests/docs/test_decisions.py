"""Decision records have one form, and the index and the navigation have each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import DOCS, REPOSITORY

FOLDER = DOCS / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
SECTIONS = ["Problem", "Choice", "Refused", "What would change our mind"]
MIN_LINES, MAX_LINES = 40, 80

each_record = pytest.mark.parametrize("record", RECORDS, ids=[path.stem for path in RECORDS])


def faults(name: str, text: str) -> Iterator[str]:
    """What is wrong with the form of a record."""
    lines = text.splitlines()
    number = re.match(r"(\d{3})-[a-z0-9-]+$", name)
    title = re.match(r"# (\d+)\. \S", lines[0])
    if number is None or title is None or int(number[1]) != int(title[1]):
        yield "number"
    if re.findall(r"^## (.+)$", text, re.MULTILINE) != SECTIONS:
        yield "sections"
    if any(not part.strip() for part in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]):
        yield "empty section"
    if not MIN_LINES <= len(lines) <= MAX_LINES:
        yield "length"
    # A figure with a unit stands in a paragraph or item that names its page.
    for part in re.split(r"\n\n|\n(?=- )", text):
        if re.search(r"\d (?:ms|MB|GB|s)\b|\d rows a second", part) and "](../" not in part:
            yield "figure without its page"


def good_record() -> str:
    lines = [f"\n## {section}\n\n" + "A line.\n" * 7 for section in SECTIONS]
    return "# 7. A title\n" + "".join(lines)


@each_record
def test_the_form_of_a_record(record: Path) -> None:
    assert list(faults(record.stem, record.read_text(encoding="utf-8"))) == []


def test_the_numbers_have_no_gap() -> None:
    assert [int(path.name[:3]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))
    assert len(RECORDS) >= 10


def test_the_index_has_each_record_under_its_title() -> None:
    rows = re.findall(
        r"^\| (\d+) \| \[(.+)\]\((.+)\) \| \S.+ \|$", (FOLDER / "index.md").read_text("utf-8"), re.MULTILINE
    )
    titles = [re.match(r"# (\d+)\. (.+)", path.read_text(encoding="utf-8")) for path in RECORDS]
    expected = [(*title.groups(), path.name) for title, path in zip(titles, RECORDS, strict=True) if title]
    assert rows == expected


def test_the_navigation_has_the_records_in_order() -> None:
    sections = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    (pages,) = [section["Decisions"] for section in sections if "Decisions" in section]
    paths = [path for page in pages for path in page.values()]
    assert paths == ["decisions/index.md", *(f"decisions/{path.name}" for path in RECORDS)]


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("007-title", ("", ""), []),
        ("008-title", ("", ""), ["number"]),
        ("7-title", ("", ""), ["number"]),
        ("007-title", ("## Refused", "## Rejected"), ["sections"]),
        ("007-title", ("## Refused\n\n" + "A line.\n" * 7, "## Refused\n\n" + "\n" * 7), ["empty section"]),
        ("007-title", ("A line.\n" * 7, "A line.\n"), ["length"]),
        ("007-title", ("A line.\n", "A line.\n" * 10), ["length"]),
        ("007-title", ("## Choice\n\nA line.", "## Choice\n\nIt takes 5 ms."), ["figure without its page"]),
        ("007-title", ("## Choice\n\nA line.", "## Choice\n\nIt takes 5 ms ([x](../x.md))."), []),
    ],
)
def test_a_fault_is_found(name: str, change: tuple[str, str], fault: list[str]) -> None:
    assert list(faults(name, good_record().replace(*change) if change[0] else good_record())) == fault
