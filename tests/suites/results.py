"""Result of a suite: its tests, and the problems found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path

from tests.suites.exclusions import Exclusion


class Outcome(str, Enum):
    """Outcome of a test."""

    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    IGNORED = "ignored"


class End(str, Enum):
    """How a suite ended."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Case:
    """One test.

    Args:
        name: its name.
        outcome: its outcome.
        seconds: its duration.
        providers: number of instances of the provider under test built by the test; 0 if it does not use the provider.
        error: why it did not pass.
        flaky: whether it failed at first, and passed when run alone.
        excluded: for an excluded failure, why it does not count.
    """

    name: str
    outcome: Outcome
    seconds: float = 0.0
    providers: int = 0
    error: str = ""
    flaky: bool = False
    excluded: str = ""


@dataclass(frozen=True)
class SuiteResult:
    """A suite that has run.

    Args:
        suite: its full class name.
        end: how it ended.
        seconds: its duration, including retried tests.
        cases: its tests, in the order in which they ended.
        error: why it was aborted.
        unmatched: exclusions that match none of its tests.
        uncaught: uncaught errors of our threads.
    """

    suite: str
    end: End
    seconds: float
    cases: tuple[Case, ...]
    error: str = ""
    unmatched: tuple[str, ...] = ()
    uncaught: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The class name without its package."""
        return self.suite.rpartition(".")[2]

    @property
    def failures(self) -> list[Case]:
        """Failed tests that are not excluded."""
        return [case for case in self.cases if case.outcome is Outcome.FAILED and not case.excluded]

    def count(self, outcome: Outcome) -> int:
        """Number of tests with this outcome, without excluded failures."""
        return sum(case.outcome is outcome and not case.excluded for case in self.cases)

    @property
    def problems(self) -> list[str]:
        """Problems of the suite, one per line."""
        lines = [f"{self.name}: {case.name}: {_first_line(case.error)}" for case in self.failures]
        lines += [f"{self.name}: no test is called like the exclusion {pattern}" for pattern in self.unmatched]
        lines += [f"{self.name}: uncaught {_first_line(error)}" for error in self.uncaught]
        if self.end is not End.COMPLETED:
            lines.append(f"{self.name}: {self.end.value}: {_first_line(self.error)}")
        elif not any(case.providers for case in self.cases):
            lines.append(f"{self.name}: no test has met the provider")
        return lines

    @property
    def is_good(self) -> bool:
        """True if there are no problems."""
        return not self.problems

    def judged(self, exclusions: Sequence[Exclusion]) -> SuiteResult:
        """The result with this suite's exclusions applied."""
        own = [exclusion for exclusion in exclusions if exclusion.suite == self.name]
        cases = []
        for case in self.cases:
            reasons = [exclusion.reason for exclusion in own if exclusion.is_of(case.name)]
            failed = case.outcome is Outcome.FAILED
            cases.append(replace(case, excluded=reasons[0]) if failed and reasons else case)
        idle = [each.pattern for each in own if not any(each.is_of(case.name) for case in self.cases)]
        return replace(self, cases=tuple(cases), unmatched=tuple(idle) if self.end is End.COMPLETED else ())

    def after_retry(self, retried: SuiteResult) -> SuiteResult:
        """The result updated with a separate run of the failed tests."""
        passed = {case.name for case in retried.cases if case.outcome is Outcome.PASSED}
        cases = [
            replace(case, outcome=Outcome.PASSED, flaky=True) if case.name in passed else case for case in self.cases
        ]
        return replace(self, cases=tuple(cases), seconds=self.seconds + retried.seconds)

    def write(self, folder: Path) -> None:
        """Writes the result as JSON to the folder."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")[:300]
