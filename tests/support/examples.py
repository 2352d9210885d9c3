"""Settings for Hypothesis."""

from __future__ import annotations

from hypothesis import HealthCheck

OF_THE_MACHINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
"""Health checks that depend on the machine or on the random choice of examples, and not on the code under test."""
