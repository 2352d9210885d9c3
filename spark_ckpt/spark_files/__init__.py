"""Spark's own files in a checkpoint location: logs, state schemas and operator metadata."""
