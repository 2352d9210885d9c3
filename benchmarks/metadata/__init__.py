"""Benchmarks of the metadata codec."""
