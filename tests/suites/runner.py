"""Runs suites in as few JVMs as possible, one JVM at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.suites.exclusions import exclusions_of
from tests.suites.jvm import SuiteJvm
from tests.suites.results import End, SuiteResult
from tests.suites.suites import Suite
from tests.support.provider import ProviderUnderTest
from tests.support.spark_version import MINOR

SUITES_PER_JVM = 6
"""A warm JVM is faster, but leftovers of the suites in it must not accumulate without bound."""

MAX_RETRIED = 25


def run_suites(
    suites: Sequence[Suite], work: Path, provider: ProviderUnderTest, planned: Path | None = None
) -> Iterator[SuiteResult]:
    """Runs suites. Failed tests that are not excluded are run once more, alone.

    Args:
        suites: suites to run; those that can share a JVM are grouped.
        work: a folder; it keeps the logs of a JVM unless all of its suites are good.
        provider: the provider under test.
        planned: folder in which queries are kept that are planned as well; None to plan none.
    """
    waiting = list(suites)
    number = 0
    while waiting:
        batch = [suite for suite in waiting if suite.can_share(waiting[0])][:SUITES_PER_JVM]
        number += 1
        jvm = SuiteJvm(work / f"jvm-{number}", batch, provider, planned=planned)
        results = [_settled(result, batch, work, provider) for result in jvm.run()]
        if all(result.is_good for result in results):
            jvm.forget()
        yield from results
        begun = {result.suite for result in results}
        waiting = [suite for suite in waiting if suite.class_name not in begun]


def _settled(result: SuiteResult, batch: Sequence[Suite], work: Path, provider: ProviderUnderTest) -> SuiteResult:
    """The final result, after a retry of the failures."""
    result = result.judged(exclusions_of(MINOR))
    names = [case.name for case in result.failures]
    if not names or len(names) > MAX_RETRIED or result.end is not End.COMPLETED:
        return result
    suite = next(suite for suite in batch if suite.class_name == result.suite)
    jvm = SuiteJvm(work / f"{suite.name}-again", [suite], provider, names, local_commands=False)
    retried = jvm.run()[0]
    if retried.is_good:
        jvm.forget()
    return result.after_retry(retried)
