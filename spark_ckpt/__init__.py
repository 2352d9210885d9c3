"""Flink-style checkpoints for Spark Structured Streaming.

Importing this package imports neither PySpark nor a JVM.
"""

from __future__ import annotations

__version__ = "0.1.0"
