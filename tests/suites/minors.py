"""Spark minor versions whose suites can run, and which of them a suite or an exclusion belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.spark_version import MINOR, order

WITH_SUITES = ("4.0", "4.1", "4.2")
"""Spark minor versions whose test classes are in Maven Central, oldest first. It has no Spark 4.3."""

NO_SUITES = f"Maven Central has no test classes of Spark {MINOR}"
"""Reason why the suites cannot run on the Spark of this environment, if it is none of those."""


@dataclass(frozen=True)
class Minors:
    """A range of Spark minor versions.

    Args:
        since: the first of them.
        before: the first after them; none if empty.
    """

    since: str = WITH_SUITES[0]
    before: str = ""

    def __contains__(self, minor: str) -> bool:
        """True if the minor version is in the range."""
        return order(self.since) <= order(minor) and (not self.before or order(minor) < order(self.before))


EACH = Minors()
ONLY_41 = Minors(since="4.1", before="4.2")
BEFORE_42 = Minors(before="4.2")
SINCE_41 = Minors(since="4.1")
SINCE_42 = Minors(since="4.2")
