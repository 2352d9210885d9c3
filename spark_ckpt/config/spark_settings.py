"""Spark's own settings that make a session use spark-ckpt, with their values."""

from __future__ import annotations

PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
"""Setting of the state-store provider."""

PROVIDER_CLASS = "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider"
"""Our provider, as also recorded in Spark's offset log."""

EXTENSIONS_KEY = "spark.sql.extensions"
"""Setting of the session extensions."""

EXTENSIONS_CLASS = "org.apache.spark.sql.ckpt.CheckpointExtensions"
"""Session extension that allows our provider for `transformWithState`."""

FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
"""Setting of the class that writes Spark's own logs."""

FILE_MANAGER_CLASS = "org.apache.spark.sql.ckpt.CheckpointLogFileManager"
"""Log writer with one conditional put per entry on an object store."""
