"""Import of keyed state of a Flink job into the checkpoint location of a Spark query (docs/flink-import.md).

imported = import_flink_savepoint("savepoint-4f1e2a", "/checkpoints/orders")
"""

from __future__ import annotations

from spark_ckpt.flink.importing.importing import import_flink_savepoint
from spark_ckpt.flink.importing.result import FlinkImport

__all__ = ["FlinkImport", "import_flink_savepoint"]
