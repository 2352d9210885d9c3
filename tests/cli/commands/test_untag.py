from __future__ import annotations

from pathlib import Path

from tests.support.cli import run
from tests.support.queries import make_query


def test_a_tag_that_is_removed(tmp_path: Path) -> None:
    location = make_query(tmp_path / "q").storage.location
    run("tag", location, 5, "a")
    assert run("untag", location, "a").stdout == "checkpoint 5: tag a removed\n"
    assert "TAGS" not in run("list", location).stdout
    again = run("untag", location, "a")
    assert again.status == 1
    assert "no tag 'a'; available: none" in again.stderr
