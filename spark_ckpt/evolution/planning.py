"""Plan of a query that is not started: its state schemas, and what its state means."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.driver_jvm.objects import query_plans
from spark_ckpt.evolution.errors import QueryPlanError
from spark_ckpt.evolution.planned_query import SCRATCH, PlannedQuery
from spark_ckpt.evolution.schemas import planned_schemas
from spark_ckpt.spark_files.logs import STATE, SparkLog
from spark_ckpt.spark_files.schemas import with_nullable_columns
from spark_ckpt.storage import LocalStorage, files_below

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

MODES = ("append", "update", "complete")


def plan_query(
    query: DataFrame | DataStreamWriter, output_mode: str | None, settings: Mapping[str, str]
) -> PlannedQuery:
    """Plans a query as a start with a new location would. No source is asked, no data is read and no task runs.

    Args:
        query: the query, or its writer.
        output_mode: `append`, `update` or `complete`; by default that of the writer, or `append`.
        settings: settings that a start takes from the offset log.

    Raises:
        QueryPlanError: Spark cannot plan it.
    """
    frame, mode = _frame_of(query, output_mode)
    spark: Any = frame.sparkSession
    require_classic(spark)
    if not frame.isStreaming:
        raise QueryPlanError("it is no streaming query")
    if mode not in MODES:
        raise QueryPlanError(f"its output mode is '{mode}', not one of {', '.join(MODES)}")
    with _scratch(settings) as scratch, _errors():
        metadata = json.dumps(_metadata(settings))
        root = f"file:{scratch}"
        text = query_plans(spark).plan(frame._jdf, mode, root, dict(settings), metadata)
        storage = LocalStorage(scratch)
        meaning = QueryMeaning.decode(text)
        files = {name: _accepted(name, storage.read(name)) for name in files_below(storage, STATE)}
        log = SparkLog(storage)
        for operator in meaning.operators:
            for name, described in log.metadata_until(operator.operator_id, 0).items():
                files[name] = described.moved_to(SCRATCH).encode()
        return PlannedQuery(meaning, tuple(planned_schemas(storage, meaning, settings)), files, str(spark.version))


def require_classic(spark: object) -> None:
    """Checks that a session has a JVM of its own.

    Raises:
        QueryPlanError: it is one of Spark Connect.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise QueryPlanError("it belongs to a session of Spark Connect; use a classic session")


def _accepted(name: str, data: bytes) -> bytes:
    """A file of the plan as a start accepts it: with data, a column may be null that the plan takes for never null."""
    return with_nullable_columns(data, name) if name.endswith("_metadata/schema") else data


def _frame_of(query: Any, output_mode: str | None) -> tuple[Any, str]:  # noqa: ANN401  (Py4J has no types)
    writer = getattr(query, "_jwrite", None)
    if writer is None:
        return query, (output_mode or "append").lower()
    frame = query._df
    mode = output_mode or query_plans(frame.sparkSession).outputModeOf(writer)
    return frame, str(mode).lower()


def _metadata(settings: Mapping[str, str]) -> Mapping[str, object]:
    return {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": dict(settings)}


@contextmanager
def _scratch(settings: Mapping[str, str]) -> Iterator[Path]:
    """An empty location with a batch, for which `transformWithState` looks (`OperatorStateMetadataV2Reader`)."""
    with tempfile.TemporaryDirectory(prefix="spark-ckpt-plan-") as name:
        offsets = Path(name, "offsets", "0")
        offsets.parent.mkdir()
        offsets.write_text(f"v1\n{json.dumps(_metadata(settings))}\n-", encoding="utf-8")
        yield Path(name)


@contextmanager
def _errors() -> Iterator[None]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as e:
        raise QueryPlanError(str(e)) from e
    except Py4JJavaError as e:
        raise QueryPlanError(str(e.java_exception)) from e
