"""Spark's names of stateful operators and of their stores (`StatefulOperatorsUtils`, `StateStoreId`)."""

from __future__ import annotations

DEFAULT_STORE = "default"
"""Name of the store of an operator with a single store."""

GLOBAL_LIMIT = "globalLimit"
"""Limit, which runs as a single task."""

SESSION_WINDOW = "sessionWindowStateStoreSaveExec"
"""Session window aggregate. The last key column, the session start, is not hashed."""

JOIN = "symmetricHashJoin"
"""Stream-stream join."""

TRANSFORM_WITH_STATE = ("transformWithStateExec", "transformWithStateInPandasExec", "transformWithStateInPySparkExec")
"""`transformWithState` in Scala, in pandas and in PySpark."""

AGGREGATION = "stateStoreSave"
"""Aggregation."""

REAL_TIME_AGGREGATION = "StatefulStreamlineAggregate"
"""Aggregation in real-time mode; its state is that of `AGGREGATION`."""

HASHED = (
    AGGREGATION,
    REAL_TIME_AGGREGATION,
    "dedupe",
    "dedupeWithinWatermark",
    SESSION_WINDOW,
    JOIN,
    "flatMapGroupsWithState",
    "applyInPandasWithState",
    *TRANSFORM_WITH_STATE,
)
"""Operators with a partition key in Spark (`StatePartitionKeyExtractorFactory`), and the aggregation of real-time
mode."""
