"""Benchmark of imports and exports against a plain read of the same state by its own provider."""
