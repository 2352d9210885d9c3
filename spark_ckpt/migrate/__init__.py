"""Import of state from a provider of Spark, export to one, and undo of an import, as Spark jobs."""

from spark_ckpt.migrate.locations import export_location, import_location, undo_import_of_location

__all__ = ["export_location", "import_location", "undo_import_of_location"]
