"""Compaction of chains: which bases and merges are asked of stores, and which of their results count."""
