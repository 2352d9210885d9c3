from __future__ import annotations

from dataclasses import replace

from tests.suites.exclusions import Exclusion
from tests.suites.report import markdown
from tests.suites.results import Case, End, Outcome, SuiteResult

PASSED = Case("counts", Outcome.PASSED, providers=3)
FAILED = Case("reads metrics of RocksDB", Outcome.FAILED, providers=1, error="\nno such metric\n  at ...")
IGNORED = Case("later", Outcome.IGNORED)


def _result(*cases: Case, end: End = End.COMPLETED) -> SuiteResult:
    return SuiteResult("org.example.SomeSuite", end, 12.4, cases)


def test_a_failure_counts_unless_it_is_excluded() -> None:
    result = _result(PASSED, FAILED, IGNORED)
    assert result.problems == ["SomeSuite: reads metrics of RocksDB: no such metric"]
    assert not result.is_good
    judged = result.judged([Exclusion("SomeSuite", "reads metrics", "ours has others")])
    assert judged.is_good and not judged.problems
    assert [case.excluded for case in judged.cases] == ["", "ours has others", ""]
    assert [judged.count(outcome) for outcome in Outcome] == [1, 0, 0, 1]


def test_an_exclusion_is_of_its_own_suite_and_of_the_beginning_of_names() -> None:
    result = _result(FAILED)
    assert not result.judged([Exclusion("OtherSuite", "reads metrics", "ours has others")]).is_good
    assert not result.judged([Exclusion("SomeSuite", "metrics", "ours has others")]).is_good


def test_an_excluded_test_that_passes_has_passed() -> None:
    judged = _result(PASSED).judged([Exclusion("SomeSuite", "counts", "a race")])
    assert judged.is_good and judged.count(Outcome.PASSED) == 1


def test_an_exclusion_of_no_test_is_a_problem() -> None:
    exclusions = [Exclusion("SomeSuite", "renamed", "it was once")]
    judged = _result(PASSED).judged(exclusions)
    assert not judged.is_good
    assert judged.problems == ["SomeSuite: no test is called like the exclusion renamed"]
    assert not _result(end=End.CRASHED).judged(exclusions).unmatched


def test_a_suite_that_has_not_met_the_provider_says_nothing() -> None:
    assert _result(IGNORED).problems == ["SomeSuite: no test has met the provider"]


def test_only_what_fails_twice_has_failed() -> None:
    other = Case("fails always", Outcome.FAILED)
    again = _result(Case(FAILED.name, Outcome.PASSED), Case("fails always", Outcome.FAILED))
    result = _result(PASSED, FAILED, other).after_retry(again)
    assert [case.name for case in result.failures] == ["fails always"]
    assert [case.flaky for case in result.cases] == [False, True, False]


def test_the_table_has_a_row_for_each_suite_and_the_sums() -> None:
    first = _result(PASSED, FAILED).judged([Exclusion("SomeSuite", "reads", "ours has others")])
    second = SuiteResult("org.example.OtherSuite", End.COMPLETED, 30.0, (PASSED, replace(PASSED, flaky=True), IGNORED))
    rows = markdown([first, second]).splitlines()[2:]
    assert rows == [
        "| SomeSuite | 1 | 0 | 1 | 0 | 0 | 0 | 2 | 12 |",
        "| OtherSuite | 2 | 0 | 0 | 0 | 1 | 1 | 2 | 30 |",
        "| total | 3 | 0 | 1 | 0 | 1 | 1 | 4 | 42 |",
    ]
