"""Earlier name of `spark_ckpt.flink.tables.read`."""

from __future__ import annotations

from spark_ckpt.flink.tables.read import FlinkScan, list_flink_states, read_flink_state

__all__ = ["FlinkScan", "list_flink_states", "read_flink_state"]
