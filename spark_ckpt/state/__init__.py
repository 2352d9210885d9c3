"""State of a checkpoint as tables, without Spark."""

from __future__ import annotations
