"""The result of a notebook's cell: tables, a picture, and text."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from spark_ckpt import display
from spark_ckpt.location.errors import NoCheckpointError
from spark_ckpt.notebook import StateDisplay
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.storage import LocalStorage
from tests.docs.made_up import make_totals
from tests.support.locations import LocationBuilder
from tests.support.queries import make_query


@pytest.fixture
def totals(tmp_path: Path) -> Path:
    make_totals(tmp_path / "totals", "user")
    return tmp_path / "totals"


def picture(shown: StateDisplay) -> ElementTree.Element:
    """The picture in the HTML."""
    match = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', shown._repr_html_())
    assert match is not None
    return ElementTree.fromstring(base64.b64decode(match[1]))


def test_a_cell_has_tables_and_a_picture(totals: Path) -> None:
    shown = display(totals)
    html = shown._repr_html_()
    assert html.count("<table>") == 2
    assert "<th>key.user</th>" in html
    assert "<script" not in html
    assert picture(shown).tag == "{http://www.w3.org/2000/svg}svg"
    assert str(totals) in html


def test_a_terminal_has_the_same_as_text(totals: Path) -> None:
    lines = str(display(totals)).splitlines()
    assert lines[0].startswith(f"{totals}: checkpoint ")
    assert lines[1].split() == ["operator", "store", "partitions", "rows", "bytes"]
    assert "key.user" in lines[lines.index("") + 1]
    assert repr(display(totals)) == str(display(totals))


def test_rows_are_limited(totals: Path) -> None:
    every = display(totals)
    assert every.rows is not None
    assert not every.has_more
    some = display(totals, limit=1)
    assert some.rows is not None
    assert len(some.rows.cells) == 1
    assert some.has_more
    assert str(some).endswith("1 row shown; there are more")
    user = every.rows.cells[0][0]
    one = display(str(totals), where=f"key.user = '{user}'")
    assert one.rows is not None
    assert [row[0] for row in one.rows.cells] == [user]


def test_several_states_are_listed_without_rows(tmp_path: Path) -> None:
    query = make_query(tmp_path / "q")
    shown = display(query.storage.location)
    assert shown.rows is None
    assert shown._repr_html_().count("<table>") == 1
    assert shown._repr_html_().count("<tr>") == 1 + 3
    assert len(list(picture(shown).iter("{http://www.w3.org/2000/svg}rect"))) == len(shown.history) > 1


def test_a_state_that_is_not_there(totals: Path) -> None:
    with pytest.raises(StateNotFoundError):
        display(totals, operator=7)


def test_names_of_the_query_are_escaped(totals: Path) -> None:
    place = totals.parent / "<b>x"
    totals.rename(place)
    html = display(place)._repr_html_()
    assert "<b>x" not in html.replace(f"<b>{html.split('<b>')[1].split('</b>')[0]}</b>", "")
    assert "&lt;b&gt;x" in html


def test_what_has_no_checkpoint(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "q")
    LocationBuilder(storage).query("11111111-2222-3333-4444-555555555555")
    storage.make_directory("ckpt/completed")
    with pytest.raises(NoCheckpointError):
        display(tmp_path / "q")


def test_a_query_tells_its_location(totals: Path) -> None:
    root = SimpleNamespace(resolvedCheckpointRoot=lambda: f"file:{totals}")
    query: Any = SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: root))
    assert display(query).location == f"file:{totals}"
    with pytest.raises(TypeError, match="does not tell its checkpoint location: pass the location itself"):
        display(object())  # type: ignore[arg-type]
