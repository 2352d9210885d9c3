"""Keyed state of Flink jobs as tables."""
