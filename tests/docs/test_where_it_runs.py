"""The page "Where it runs" names tests and make targets that exist."""

from __future__ import annotations

import re

from tests.support.provider import REPOSITORY

PAGE = (REPOSITORY / "docs" / "where-it-runs.md").read_text(encoding="utf-8")


def test_every_test_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 15
    assert {name for name in named if not (REPOSITORY / "tests" / name).is_file()} == set()


def test_each_core_feature_has_a_core_test() -> None:
    """The features that the page promises on every Spark are tested on every Spark."""
    table = PAGE.partition("### Features by version")[2].partition("###")[0]
    everywhere = [line for line in table.splitlines() if line.count("| yes ") == 4]
    tests = {name for line in everywhere for name in re.findall(r"`(spark/[\w/]+\.py)`", line)}
    assert len(tests) > 6
    for name in tests:
        assert "pytest.mark.core" in (REPOSITORY / "tests" / name).read_text(encoding="utf-8"), name
