"""Checkpoints in storage: layout, chains, `_metadata`, and its publication."""
