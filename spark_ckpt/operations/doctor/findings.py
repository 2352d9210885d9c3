"""Findings of an examination, and its verdict."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from spark_ckpt.operations.advice import Advice


class Status(Enum):
    """Status of a finding."""

    OK = "ok"
    WARNING = "warning"
    """Something needs attention; no state is lost."""
    PROBLEM = "problem"
    """Damage, as `verify` reports it."""
    UNKNOWN = "unknown"
    """The check has no answer."""


class Verdict(Enum):
    """Verdict on a location."""

    HEALTHY = "healthy"
    ATTENTION = "attention"
    """At least one warning."""
    IN_DOUBT = "in doubt"
    """A check failed, and no other one found damage."""
    DAMAGED = "damaged"


_URGENCY = (Status.PROBLEM, Status.UNKNOWN, Status.WARNING, Status.OK)


@dataclass(frozen=True, slots=True)
class Finding:
    """Answer of one check.

    Args:
        name: subject of the check, such as `driver`.
        status: status of the answer.
        answer: the answer, in one line.
        advice: what to do next; None if nothing.
        command: the command line of that advice; None if it has none.
        data: the figures behind the answer, for JSON.
        error: class of the error that the check failed with; None if it did not fail.
    """

    name: str
    status: Status
    answer: str
    advice: Advice | None = None
    command: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    @property
    def step(self) -> str | None:
        """The advice with its command; None without advice."""
        return self.advice if self.command is None else f"{self.advice}: {self.command}"


@dataclass(frozen=True, slots=True)
class Report:
    """Result of an examination.

    Args:
        location: the checkpoint location or savepoint.
        findings: the answers of all checks.
    """

    location: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict: damage before doubt, doubt before warnings."""
        if self.count(Status.PROBLEM):
            return Verdict.DAMAGED
        if any(finding.error is not None for finding in self.findings):
            return Verdict.IN_DOUBT
        return Verdict.ATTENTION if self.count(Status.WARNING) else Verdict.HEALTHY

    def count(self, status: Status) -> int:
        """Number of findings with a status."""
        return sum(finding.status is status for finding in self.findings)

    def next_steps(self) -> Iterator[str]:
        """Steps to take, the most urgent first, without repetition."""
        by_urgency = sorted(self.findings, key=lambda finding: _URGENCY.index(finding.status))
        yield from dict.fromkeys(finding.step for finding in by_urgency if finding.step is not None)


def command_line(command: str, location: str, *options: object) -> str:
    """A command of `spark-ckpt` on a location, quoted for a shell."""
    return shlex.join(["spark-ckpt", command, location, *map(str, options)])
