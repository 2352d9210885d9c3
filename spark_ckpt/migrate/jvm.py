"""The JVM's side of imports and exports."""

from __future__ import annotations

from typing import Any


def state_transfer(spark: Any) -> Any:  # noqa: ANN401  (Py4J has no types)
    """The object `StateTransfer` of the shim in a session's JVM."""
    return spark._jvm.org.apache.spark.sql.ckpt.transfer.StateTransfer
