"""Spark's own files in a checkpoint location: logs, schemas, operator metadata."""
