"""Formats of Spark's state-store checkpoints in tests."""

from __future__ import annotations

import pytest

mainly_with_ids = pytest.mark.parametrize(
    "checkpoint_format", [pytest.param("ids-off", marks=pytest.mark.long), "ids-on"], indirect=True
)
"""Runs a test without state ids in `make test-long` only. Tests of simpler queries cover them in every run."""
