"""The Spark minor version of this environment, and those of the other environments that `make` builds."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
import pytest

from spark_ckpt.jars import SUPPORTED_SPARK, supported_minor
from tests.support.provider import REPOSITORY

MINOR = supported_minor(pyspark.__version__)
"""Spark minor version of this environment."""

DEFAULT = "4.2"
"""Spark minor version of `.venv`, for which Maven brings the jars of Delta and of Kafka's connector."""


def order(minor: str) -> tuple[int, ...]:
    """Sort key of minor versions by age."""
    return tuple(int(part) for part in minor.split("."))


HAS_KAFKA = order(MINOR) >= order(DEFAULT)
"""True if Kafka's connector for the default Spark runs here. Maven Central has none for 4.3, where that one works."""


def since(minor: str, what: str) -> pytest.MarkDecorator:
    """Skips a test on older Sparks, which lack something."""
    return pytest.mark.skipif(order(MINOR) < order(minor), reason=f"Spark has {what} since {minor}, this is {MINOR}")


needs_rows = since("4.1", "transformWithState with rows in Python")
"""Skips a test of `GroupedData.transformWithState`; the older `transformWithStateInPandas` is on every Spark."""


def needs_join_format(version: int) -> pytest.MarkDecorator:
    """Skips a test on Sparks that begin no join of state format 3 or 4 with our provider."""
    oldest = {3: "4.1", 4: "4.2"}[version]
    return pytest.mark.skipif(
        not order(oldest) <= order(MINOR) < order("4.3"),
        reason=f"Spark begins joins in state format {version} from {oldest} on, since 4.3 with RocksDB only: "
        f"this is {MINOR}",
    )


def python_of(minor: str) -> Path:
    """Python of the environment with a Spark minor version.

    Skips the test if there is no such environment.
    """
    if minor == MINOR:
        return Path(sys.executable)
    default = REPOSITORY / ".venv" / "bin" / "python"
    python = default if minor == DEFAULT else REPOSITORY / f".venv-{minor}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no environment with Spark {minor}: run 'make venv SPARK={minor}'")
    return python


ALL = sorted(SUPPORTED_SPARK, key=order)
"""All supported minor versions, oldest first."""
