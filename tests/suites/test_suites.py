"""The suites that say most in a minute; `make spark-suites` runs all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites.exclusions import EXCLUSIONS
from tests.suites.running import run_suites
from tests.suites.suites import SUITES
from tests.support.provider import CKPT, REPOSITORY

FAST = [suite for suite in SUITES if suite.fast]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fast_suites(tmp_path: Path) -> None:
    """No test of theirs fails but those that are excluded."""
    results = list(run_suites(FAST, tmp_path, CKPT))
    assert {result.suite for result in results} == {suite.class_name for suite in FAST}
    problems = [problem for result in results for problem in result.problems]
    assert not problems, "\n".join(problems)


def test_the_fast_suites_share_one_jvm() -> None:
    assert len(FAST) > 1
    assert all(suite.can_share(FAST[0]) for suite in FAST)


def test_suites_are_there_once_and_exclusions_are_of_them() -> None:
    names = [suite.name for suite in SUITES]
    assert len(set(names)) == len(names)
    assert {exclusion.suite for exclusion in EXCLUSIONS} <= set(names)


def test_the_page_gives_the_reason_of_each_exclusion() -> None:
    page = (REPOSITORY / "docs" / "spark-suites.md").read_text(encoding="utf-8")
    assert not [exclusion for exclusion in EXCLUSIONS if f"| {exclusion.suite} | " not in page]
    assert not [exclusion for exclusion in EXCLUSIONS if exclusion.reason not in page]
