"""Imports and exports in a Spark session."""

from spark_ckpt.transfer.locations import export_location, import_location, undo_import_of_location

__all__ = ["export_location", "import_location", "undo_import_of_location"]
