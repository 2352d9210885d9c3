"""Examinations of made-up locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_ckpt.operations.doctor import Finding, Report, examine
from spark_ckpt.storage import Storage
from tests.support.locations import FIRST_COMPLETED_MS


@dataclass
class At:
    """Clock that stands still.

    Args:
        ms: milliseconds since 1970 UTC.
    """

    ms: int

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def sleep(self, seconds: float) -> None:
        raise AssertionError("no check waits")


def examined(storage: Storage, now_ms: int = FIRST_COMPLETED_MS, **options: Any) -> Report:
    """Examination at a given time."""
    return examine(storage, clock=At(now_ms), **options)


def only(report: Report, name: str) -> Finding:
    """The only finding of a check."""
    (finding,) = [finding for finding in report.findings if finding.name == name]
    return finding
