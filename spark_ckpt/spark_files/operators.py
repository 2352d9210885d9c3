"""Spark's names of stateful operators and of their stores (`StatefulOperatorsUtils`, `StateStoreId`)."""

from __future__ import annotations

DEFAULT_STORE = "default"
"""The store of an operator that has one."""

GLOBAL_LIMIT = "globalLimit"
"""The limit, which runs as one task."""

SESSION_WINDOW = "sessionWindowStateStoreSaveExec"
"""The aggregate by session windows. The last column of its keys, the start of the session, is not hashed."""

JOIN = "symmetricHashJoin"
"""The join of two streams."""

TRANSFORM_WITH_STATE = ("transformWithStateExec", "transformWithStateInPandasExec", "transformWithStateInPySparkExec")
"""`transformWithState`."""

HASHED = (
    "stateStoreSave",
    "dedupe",
    "dedupeWithinWatermark",
    SESSION_WINDOW,
    JOIN,
    "flatMapGroupsWithState",
    "applyInPandasWithState",
    *TRANSFORM_WITH_STATE,
)
"""The operators that Spark has a partition key for (`StatePartitionKeyExtractorFactory`)."""
