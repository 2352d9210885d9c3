"""Examples that Hypothesis makes."""

from __future__ import annotations

from hypothesis import HealthCheck

OF_THE_MACHINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
"""Health checks whose outcome depends on the machine, or on which examples chance has made: they say nothing of what is
tested."""
