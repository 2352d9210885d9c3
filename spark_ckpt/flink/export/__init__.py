"""State as a canonical savepoint of Flink, written without a JVM."""

from __future__ import annotations
