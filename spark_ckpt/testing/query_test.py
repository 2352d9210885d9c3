"""`QueryTest`: one streaming query, driven batch by batch."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spark_ckpt.bootstrap import WrittenState, write_state
from spark_ckpt.clock import SystemClock
from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.driver_jvm.objects import stepped_query
from spark_ckpt.errors import PySparkNotFoundError
from spark_ckpt.figures import parse_time, time_ms
from spark_ckpt.reading import read_state
from spark_ckpt.testing.errors import BatchTimeoutError, NotUnderTestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from spark_ckpt.edit.row_input import RowSource
    from spark_ckpt.state.views import Side

FIRST_TIME = datetime(2026, 1, 1, tzinfo=timezone.utc)
"""Time at which a query under test begins by default."""


class QueryTest:
    """A streaming query that a test drives: it gives it state and input, runs one batch at a time, and looks at the
    output and the state. The clock of the query is the test's: processing-time timers and times to live see it.

    The query runs in full: sources, watermark, all operators and their state store, the log. Its input comes from files
    of this test, and its output goes to memory. Use it as a context manager.

    Args:
        spark: a classic session set up by `spark_ckpt.configure`, with few partitions
            (`spark.sql.shuffle.partitions`), because each costs a task per batch.
        query: makes the query's result from its inputs, which are passed by name.
        inputs: schema of each input by name, as a `StructType` or in Spark's DDL.
        output_mode: `append`, `update` or `complete`.
        directory: a new or empty directory for input and checkpoints; by default a temporary one, which is deleted at
            the end.
        now: time of the first batch, in UTC unless it has a time zone.
        timeout: seconds that a batch may take.

    Raises:
        NotUnderTestError: the session is none of a classic Spark with our state store.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: Callable[..., DataFrame],
        inputs: Mapping[str, StructType | str],
        *,
        output_mode: str = "append",
        directory: str | os.PathLike[str] | None = None,
        now: datetime = FIRST_TIME,
        timeout: float = 60.0,
    ) -> None:
        _check_session(spark)
        self._spark = spark
        self._schemas = {name: _struct(schema) for name, schema in inputs.items()}
        self._output_mode = output_mode
        self._is_temporary = directory is None
        self._directory = Path(tempfile.mkdtemp(prefix="query-test-") if directory is None else directory).resolve()
        self._timeout = timeout
        self._now_ms = time_ms(now)
        self._running: Any = None
        self._ahead_ms = 0
        frames = {name: self._input(name) for name in self._schemas}
        self._output = query(**frames)

    def __enter__(self) -> QueryTest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def location(self) -> str:
        """Checkpoint location of the query."""
        return str(self._directory / "checkpoint")

    @property
    def now(self) -> datetime:
        """Time of the next batch at the earliest, in UTC."""
        return datetime.fromtimestamp((self._now_ms + self._ahead_ms) / 1000, timezone.utc)

    @property
    def query(self) -> StreamingQuery | None:
        """The running query; None before the first batch and after a stop."""
        if self._running is None:
            return None
        from pyspark.sql.streaming.query import StreamingQuery

        return StreamingQuery(self._running.query())

    @property
    def watermark(self) -> datetime | None:
        """Watermark of the last batch with a progress report, in UTC; None without one."""
        progress: Any = None if self.query is None else self.query.lastProgress
        text = None if progress is None else progress["eventTime"].get("watermark")
        return None if text is None else parse_time(text)

    def write_state(
        self, rows: RowSource | Mapping[str, RowSource], *, watermark: datetime | None = None
    ) -> WrittenState:
        """Gives the query the state with which it begins. Call it before the first batch.

        Args:
            rows: as in `spark_ckpt.write_state`: a table of Arrow, a batch `DataFrame`, or rows of each state by name.
            watermark: watermark at which the query begins, in UTC unless it has a time zone.

        Raises:
            NotUnderTestError: the query has begun.
            SparkCkptError: as `spark_ckpt.write_state` raises.
        """
        if Path(self.location).exists():
            raise NotUnderTestError("it has begun, and only a new one can begin with other state")
        return write_state(
            self._output,
            self.location,
            rows,
            output_mode=self._output_mode,
            watermark_ms=0 if watermark is None else time_ms(watermark),
            clock=_Fixed(self._now_ms),
        )

    def add(self, name: str, rows: Iterable[Any]) -> None:
        """Adds input, which the next batch reads.

        Args:
            name: the input.
            rows: rows as `SparkSession.createDataFrame` takes them: tuples, dictionaries or `Row`s.

        Raises:
            NotUnderTestError: the query has no such input.
        """
        if name not in self._schemas:
            raise NotUnderTestError(f"it has no input '{name}'; its inputs are {', '.join(self._schemas)}")
        frame = self._spark.createDataFrame(list(rows), self._schemas[name])
        frame.coalesce(1).write.mode("append").parquet(str(self._input_directory(name)))

    def run(self, batches: int = 1) -> list[Row]:
        """Fires the trigger once per batch, and returns the rows that the query has put out.

        Without new input, a batch runs if an operator asks for it, for example to put out windows that the watermark of
        the batch before has closed, or to fire timers in processing time. Otherwise none does.

        Args:
            batches: number of triggers.

        Raises:
            BatchTimeoutError: a batch takes too long.
            StreamingQueryException: the query has failed.
        """
        from pyspark.sql import DataFrame

        rows: list[Row] = []
        for _ in range(batches):
            self._fire()
            rows += DataFrame(self._running.newRows(), self._spark).collect()
        return rows

    def advance(self, time: timedelta) -> None:
        """Moves the clock of the next batch.

        Args:
            time: at least one millisecond.

        Raises:
            NotUnderTestError: the clock would not move, or go back.
        """
        ahead_ms = time // timedelta(milliseconds=1)
        if ahead_ms < 1:
            raise NotUnderTestError(f"its clock cannot move by {time}; the least is one millisecond")
        self._ahead_ms += ahead_ms

    def state(
        self,
        *,
        operator: int | str | None = None,
        store: str | None = None,
        variable: str | None = None,
        side: Side | None = None,
        where: str | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of state after the last batch, without the numbers of partitions, in the order of their text.

        Args:
            operator: as in `spark_ckpt.read_state`; so are the others.
            store: name of the store.
            variable: state variable or column family.
            side: side of a join.
            where: condition on rows.

        Raises:
            SparkCkptError: as `spark_ckpt.read_state` raises.
        """
        table = read_state(
            self.location, operator=operator, store=store, variable=variable, side=side, where=where
        ).to_arrow()
        rows = table.drop_columns(["partition_id"]).to_pylist()
        return sorted(rows, key=str)

    def restart(self) -> None:
        """Stops the query. The next batch starts it again from its checkpoint, with no memory of its own."""
        if self._running is not None:
            self._now_ms = int(self._running.timeMs())
            self._running.query().stop()
            self._running = None

    def close(self) -> None:
        """Stops the query. A temporary directory is deleted."""
        self.restart()
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _fire(self) -> None:
        if self._running is None:
            self._now_ms += self._ahead_ms
            self._running = stepped_query(self._spark)(
                self._output._jdf, self.location, self._output_mode, self._now_ms
            )
        else:
            self._running.step(max(1, self._ahead_ms))
        self._ahead_ms = 0
        has_ended = self._running.awaitIdle(round(self._timeout * 1000))
        query = self.query
        assert query is not None
        if (error := query.exception()) is not None:
            raise error
        if not has_ended:
            raise BatchTimeoutError(self._timeout)
        self._now_ms = int(self._running.timeMs())

    def _input(self, name: str) -> DataFrame:
        directory = self._input_directory(name)
        directory.mkdir(parents=True, exist_ok=True)
        return self._spark.readStream.schema(self._schemas[name]).parquet(str(directory))

    def _input_directory(self, name: str) -> Path:
        return self._directory / "input" / name


class _Fixed(SystemClock):
    """A clock that stands still.

    Args:
        now_ms: its time.
    """

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


def _check_session(spark: SparkSession) -> None:
    if not hasattr(spark, "_jsparkSession"):
        raise NotUnderTestError("its session is one of Spark Connect; use a classic one")
    if spark.conf.get(PROVIDER_KEY, None) != PROVIDER_CLASS:
        raise NotUnderTestError("its session is not set up: build it with spark_ckpt.configure(SparkSession.builder)")


def _struct(schema: StructType | str) -> StructType:
    try:
        from pyspark.sql.types import StructType
    except ImportError as e:
        raise PySparkNotFoundError from e
    if isinstance(schema, StructType):
        return schema
    struct = StructType.fromDDL(schema)
    assert isinstance(struct, StructType)
    return struct
