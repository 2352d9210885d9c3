"""The suites that cover most in a minute; `make spark-suites` runs all of them."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.suites.exclusions import EXCLUSIONS
from tests.suites.jvm import spark_tests
from tests.suites.left_out import LEFT_OUT, PACKAGES
from tests.suites.runner import run_suites
from tests.suites.suites import SUITES
from tests.support.provider import CKPT, REPOSITORY

FAST = [suite for suite in SUITES if suite.fast]
PAGE = (REPOSITORY / "docs" / "spark-suites.md").read_text(encoding="utf-8")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fast_suites(tmp_path: Path) -> None:
    """Only excluded tests of these suites fail."""
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


def test_each_suite_of_streaming_and_state_is_on_the_list_or_left_out() -> None:
    with ZipFile(spark_tests()) as classes:
        names = [name.removesuffix(".class").replace("/", ".") for name in classes.namelist()]
    published = {name for name in names if name.endswith("Suite") and name.startswith(PACKAGES)}
    listed = {suite.class_name for suite in SUITES if not suite.name.startswith("Provider")}
    left_out = list(chain.from_iterable(LEFT_OUT.values()))
    assert listed <= published
    assert sorted(left_out) == sorted(name.rpartition(".")[2] for name in published - listed)


def test_the_page_gives_the_reason_of_each_exclusion() -> None:
    assert not [exclusion for exclusion in EXCLUSIONS if f"| {exclusion.suite} | " not in PAGE]
    assert not [exclusion for exclusion in EXCLUSIONS if exclusion.reason not in PAGE]


def test_the_page_says_what_is_left_out_and_why() -> None:
    assert not [reason for reason in LEFT_OUT if f"| {reason} |" not in PAGE]


def test_the_page_has_a_result_of_each_suite() -> None:
    assert not [suite.name for suite in SUITES if f"| {suite.name} | " not in PAGE]
