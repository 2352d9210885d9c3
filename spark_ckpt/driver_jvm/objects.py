"""Objects of the shim in a session's JVM."""

from __future__ import annotations

from typing import Any

from spark_ckpt.completed import Owner


def state_transfer(spark: Any) -> Any:  # noqa: ANN401  (Py4J has no types)
    """The object `StateTransfer`."""
    return spark._jvm.org.apache.spark.sql.ckpt.transfer.StateTransfer


def query_plans(spark: Any) -> Any:  # noqa: ANN401
    """The object `QueryPlans`."""
    return spark._jvm.org.apache.spark.sql.ckpt.meaning.QueryPlans


def aggregate_buffers(spark: Any) -> Any:  # noqa: ANN401
    """The object `AggregateBuffers`."""
    return spark._jvm.org.apache.spark.sql.ckpt.meaning.AggregateBuffers


def stepped_query(spark: Any) -> Any:  # noqa: ANN401
    """The class `SteppedQuery`."""
    return spark._jvm.org.apache.spark.sql.ckpt.testing.SteppedQuery


def has_ended(spark: Any, owner: Owner) -> bool:  # noqa: ANN401
    """True if the session's own JVM ran a query, and does so no more."""
    return bool(state_transfer(spark).hasEnded(spark._jsparkSession, owner.pid, owner.run_id))
