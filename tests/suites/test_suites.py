"""The suites that cover most in a minute, on the Spark of this environment; `make spark-suites` runs all of them."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.suites.exclusions import EXCLUSIONS, exclusions_of
from tests.suites.jvm import spark_tests
from tests.suites.left_out import LEFT_OUT, PACKAGES
from tests.suites.minors import NO_SUITES, WITH_SUITES, Minors
from tests.suites.runner import run_suites
from tests.suites.suites import SUITES, suites_of
from tests.support.provider import CKPT, REPOSITORY
from tests.support.spark_version import MINOR

FAST = [suite for suite in suites_of(MINOR) if suite.fast]
PAGE = (REPOSITORY / "docs" / "spark-suites.md").read_text(encoding="utf-8")


with_suites = pytest.mark.skipif(MINOR not in WITH_SUITES, reason=NO_SUITES)
by_minor = pytest.mark.parametrize("minor", WITH_SUITES)


@pytest.mark.long
@with_suites
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


def test_a_range_of_minors_ends_before_its_end() -> None:
    assert [minor for minor in WITH_SUITES if minor in Minors()] == ["4.0", "4.1", "4.2"]
    assert [minor for minor in WITH_SUITES if minor in Minors(since="4.1")] == ["4.1", "4.2"]
    assert [minor for minor in WITH_SUITES if minor in Minors(since="4.1", before="4.2")] == ["4.1"]


def test_make_runs_the_suites_of_each_minor_that_has_them() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert f"\nSPARKS_WITH_SUITES := {' '.join(WITH_SUITES)}\n" in makefile


def test_suites_are_there_once() -> None:
    names = [suite.name for suite in SUITES]
    assert len(set(names)) == len(names)


@by_minor
def test_exclusions_are_of_the_suites_of_the_minor(minor: str) -> None:
    names = {suite.name for suite in suites_of(minor)}
    assert {exclusion.suite for exclusion in exclusions_of(minor)} <= names


def test_the_suites_are_compiled_by_the_same_releases_as_the_shim() -> None:
    shim, suites = (
        re.findall(r"<spark\.version>(.*)</spark\.version>\s*<scala\.version>(.*)</scala\.version>", _pom(module))
        for module in ("shim", "spark-suites")
    )
    assert suites == [release for release in shim if release[0].startswith(WITH_SUITES)]
    assert len(suites) == len(WITH_SUITES) - 1, "the default is in the parent's pom.xml"


def _pom(module: str) -> str:
    return (REPOSITORY / "jvm-shim" / module / "pom.xml").read_text(encoding="utf-8")


@with_suites
def test_each_suite_of_streaming_and_state_is_on_the_list_or_left_out() -> None:
    with ZipFile(spark_tests()) as classes:
        names = [name.removesuffix(".class").replace("/", ".") for name in classes.namelist()]
    published = {name for name in names if name.endswith("Suite") and name.startswith(PACKAGES)}
    listed = {suite.class_name for suite in suites_of(MINOR) if not suite.name.startswith("Provider")}
    left_out = list(chain.from_iterable(LEFT_OUT.values()))
    assert listed <= published
    others = [name.rpartition(".")[2] for name in published - listed]
    newest = WITH_SUITES[-1]
    if newest == MINOR:
        assert sorted(left_out) == sorted(others)
    else:
        assert set(others) <= set(left_out)


def test_the_page_gives_the_minors_and_the_reason_of_each_exclusion() -> None:
    for exclusion in EXCLUSIONS:
        minors = ", ".join(minor for minor in WITH_SUITES if minor in exclusion.minors)
        row = rf"^\| {exclusion.suite} \| .* \| {re.escape(f'{minors} | {exclusion.reason}')} \|$"
        assert re.search(row, PAGE, re.MULTILINE), exclusion


def test_the_page_says_what_is_left_out_and_why() -> None:
    assert not [reason for reason in LEFT_OUT if f"| {reason} |" not in PAGE]


def test_the_page_has_a_result_of_each_suite() -> None:
    assert not [suite.name for suite in SUITES if f"| {suite.name} | " not in PAGE]
