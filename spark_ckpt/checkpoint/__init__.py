"""A checkpoint as it lies in storage: layout, chains, `_metadata`, and its publication."""
