"""Format of state files: segments, key groups and keys."""
