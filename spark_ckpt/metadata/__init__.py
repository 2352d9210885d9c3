"""Codec of the `_metadata` file of Flink checkpoints and savepoints."""
