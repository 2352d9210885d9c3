"""Flink-style checkpoints for Spark Structured Streaming.

Importing this package imports neither PySpark nor a JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_ckpt.bootstrap import write_state
    from spark_ckpt.edit import edit_state, erase_state, history_of, verify_absent
    from spark_ckpt.elasticity import elastic
    from spark_ckpt.evolution import evolve
    from spark_ckpt.flink.export.exporting import export_savepoint
    from spark_ckpt.flink.importing import import_flink_savepoint
    from spark_ckpt.jars import jar_path
    from spark_ckpt.migrate import export_location, import_location, undo_import_of_location
    from spark_ckpt.notebook import display
    from spark_ckpt.reading import read_state
    from spark_ckpt.session import configure

__all__ = [
    "__version__",
    "configure",
    "display",
    "edit_state",
    "elastic",
    "erase_state",
    "evolve",
    "export_location",
    "export_savepoint",
    "history_of",
    "import_flink_savepoint",
    "import_location",
    "jar_path",
    "read_state",
    "undo_import_of_location",
    "verify_absent",
    "write_state",
]

__version__ = "0.2.0"

_HOMES = {
    "configure": "spark_ckpt.session",
    "display": "spark_ckpt.notebook",
    "edit_state": "spark_ckpt.edit",
    "elastic": "spark_ckpt.elasticity",
    "erase_state": "spark_ckpt.edit",
    "evolve": "spark_ckpt.evolution",
    "export_location": "spark_ckpt.migrate",
    "export_savepoint": "spark_ckpt.flink.export.exporting",
    "history_of": "spark_ckpt.edit",
    "import_flink_savepoint": "spark_ckpt.flink.importing",
    "import_location": "spark_ckpt.migrate",
    "jar_path": "spark_ckpt.jars",
    "read_state": "spark_ckpt.reading",
    "undo_import_of_location": "spark_ckpt.migrate",
    "verify_absent": "spark_ckpt.edit",
    "write_state": "spark_ckpt.bootstrap",
}


def __getattr__(name: str) -> object:
    """Import the module behind a public name only when the name is used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
