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

DEDUPLICATION = "dedupe"
"""De-duplication without a bound."""

DEDUPLICATION_WITHIN_WATERMARK = "dedupeWithinWatermark"
"""De-duplication; its values are the times when rows expire."""

DEDUPLICATIONS = (DEDUPLICATION, DEDUPLICATION_WITHIN_WATERMARK)
"""Both de-duplications."""

GROUPS_WITH_STATE = ("flatMapGroupsWithState", "applyInPandasWithState")
"""Arbitrary state by group, in Scala and in pandas."""

HASHED = (
    AGGREGATION,
    REAL_TIME_AGGREGATION,
    *DEDUPLICATIONS,
    SESSION_WINDOW,
    JOIN,
    *GROUPS_WITH_STATE,
    *TRANSFORM_WITH_STATE,
)
"""Operators with a partition key in Spark (`StatePartitionKeyExtractorFactory`), and the aggregation of real-time
mode."""
