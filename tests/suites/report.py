"""Table of suites, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from tests.suites.results import Outcome, SuiteResult

HEADINGS = ("suite", "passed", "failed", "excluded", "cancelled", "ignored", "flaky", "met the provider", "seconds")


def table(results: Sequence[SuiteResult]) -> Table:
    """Table for a terminal."""
    shown = Table(title="Spark's suites", title_justify="left")
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading == "suite" else "right")
    for result in results:
        shown.add_row(*_row(result), style=None if result.is_good else "red")
    shown.add_section()
    shown.add_row(*_total(results), style="bold")
    return shown


def markdown(results: Sequence[SuiteResult]) -> str:
    """Table for a page, in Markdown."""
    rows = [HEADINGS, ("---", *["--:"] * (len(HEADINGS) - 1)), *map(_row, results), _total(results)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(result: SuiteResult) -> list[str]:
    return [result.name, *map(str, _counts(result)), f"{result.seconds:.0f}"]


def _total(results: Sequence[SuiteResult]) -> list[str]:
    counts = [sum(column) for column in zip(*map(_counts, results), strict=True)]
    return ["total", *map(str, counts), f"{sum(result.seconds for result in results):.0f}"]


def _counts(result: SuiteResult) -> list[int]:
    return [
        result.count(Outcome.PASSED),
        result.count(Outcome.FAILED),
        sum(bool(case.excluded) for case in result.cases),
        result.count(Outcome.CANCELLED),
        result.count(Outcome.IGNORED),
        sum(case.flaky for case in result.cases),
        sum(case.providers > 0 for case in result.cases),
    ]
