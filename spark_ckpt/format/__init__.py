"""Formats of state files: segments, key groups, keys."""
