"""Events of the suites in a JVM, written by our `EventReporter` as one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.suites.results import Case, End, Outcome, SuiteResult

RUN_ABORTED = "run aborted"


@dataclass
class _Record:
    cases: list[Case] = field(default_factory=list)
    running: str | None = None
    end: End | None = None
    seconds: float = 0.0
    error: str = ""
    uncaught: list[str] = field(default_factory=list)


class EventLog:
    """The events so far."""

    def __init__(self) -> None:
        self.current: str | None = None
        """Suite of the newest event."""
        self.error = ""
        """Reason why the whole run was aborted."""
        self._records: dict[str, _Record] = {}

    def add(self, lines: Iterable[str]) -> None:
        """Adds complete lines."""
        for line in lines:
            event = json.loads(line)
            if event["event"] == RUN_ABORTED:
                self.error = event["error"]
                continue
            self.current = event["suite"]
            self._add(self._records.setdefault(event["suite"], _Record()), event)

    def _add(self, record: _Record, event: dict[str, str]) -> None:
        match event["event"]:
            case "test started":
                record.running = event["test"]
            case "test ended":
                record.running = None
                seconds, providers = float(event["seconds"]), int(event["providers"])
                outcome = Outcome(event["outcome"])
                record.cases.append(Case(event["test"], outcome, seconds, providers, event["error"]))
            case "suite completed":
                record.end, record.seconds = record.end or End.COMPLETED, float(event["seconds"])
            case "suite aborted":
                record.end, record.error = End.ABORTED, event["error"]
            case "uncaught":
                record.uncaught.append(event["error"])

    def result(self, suite: str, *, timed_out: bool = False, seconds: float = 0.0) -> SuiteResult | None:
        """Result of a suite after the end of the JVM; None if the suite never began.

        Args:
            suite: full class name of the suite.
            timed_out: whether the JVM was killed because this suite exceeded its limit.
            seconds: duration to report if the suite has none of its own.
        """
        record = self._records.get(suite)
        if record is None:
            return None
        end = record.end or (End.TIMED_OUT if timed_out else End.CRASHED)
        cases = list(record.cases)
        if record.running is not None:
            cases.append(Case(record.running, Outcome.FAILED, error="still running when its JVM ended"))
        uncaught = tuple(record.uncaught)
        return SuiteResult(suite, end, record.seconds or seconds, tuple(cases), record.error, uncaught=uncaught)
