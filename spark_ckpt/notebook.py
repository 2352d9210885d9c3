"""`display`: the state and the recent checkpoints of a query, as the result of a notebook's cell."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_ckpt.checkpoint.statistics import CheckpointStats
from spark_ckpt.checkpoint.statistics_state import history_of
from spark_ckpt.cli.results.charts import text, timeline_picture
from spark_ckpt.cli.results.history_page import TIMELINE, tick, timeline_bars
from spark_ckpt.cli.results.state import cell, field_of, fields_of, rows_json, title_of
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.figures import count, human_size, iso_time
from spark_ckpt.location.errors import NoCheckpointError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.reading import read_state
from spark_ckpt.redaction import redacted

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#444}.grid{stroke:#8884}rect.one{fill:#2a6fbb}rect.failed{fill:#c8322b}"
)
_STORES = ("operator", "store", "partitions", "rows", "bytes")


@dataclass(frozen=True, slots=True, eq=False)
class StateDisplay:
    """State and recent checkpoints of a query. A notebook shows it as tables and a picture, a terminal as text.

    Args:
        location: the checkpoint location.
        checkpoint: record of the newest checkpoint.
        history: statistics of recent checkpoints, oldest first.
        rows: first rows of the state, one column per field; None if several states match.
        has_more: True if there are more rows.
    """

    location: str
    checkpoint: CheckpointRecord
    history: Sequence[CheckpointStats]
    rows: Rows | None
    has_more: bool

    def timeline_svg(self) -> str:
        """The timeline of the recent checkpoints as the content of an SVG file."""
        return timeline_picture(TIMELINE, timeline_bars(self.history), tick, _STYLE)

    def _repr_html_(self) -> str:
        """HTML without a script, and without a request. Everything from the query is escaped."""
        picture = base64.b64encode(self.timeline_svg().encode()).decode("ascii")
        parts = [
            f"<p><b>{text(redacted(self.location))}</b>: {text(self._summary())}</p>",
            f'<img alt="{text(TIMELINE)}" src="data:image/svg+xml;base64,{picture}" style="max-width: 100%">',
            _html_table(_STORES, self._stores()),
        ]
        if self.rows is not None:
            parts += [_html_table(self.rows.titles, self.rows.cells), f"<p>{text(self._shown(self.rows))}</p>"]
        return "\n".join(parts)

    def __str__(self) -> str:
        lines = [f"{redacted(self.location)}: {self._summary()}", *_text_table(_STORES, self._stores())]
        if self.rows is not None:
            lines += ["", *_text_table(self.rows.titles, self.rows.cells), self._shown(self.rows)]
        return "\n".join(lines)

    __repr__ = __str__

    def _summary(self) -> str:
        one = self.checkpoint
        return (
            f"checkpoint {one.id}, batch {one.batch_id}, {iso_time(one.timestamp_ms)}, {count(one.rows, 'row')}, "
            f"{human_size(one.state_bytes)}"
        )

    def _stores(self) -> list[list[str]]:
        return [
            [
                f"{store.operator_id} ({store.name})",
                store.store,
                f"{store.parallelism:,}",
                f"{store.rows:,}",
                human_size(store.state_bytes),
            ]
            for store in self.checkpoint.operators
        ]

    def _shown(self, rows: Rows) -> str:
        shown = count(len(rows.cells), "row")
        return f"{shown} shown; there are more" if self.has_more else shown


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of state as text.

    Args:
        titles: name of each column.
        cells: the rows.
    """

    titles: list[str]
    cells: list[list[str]]

    @classmethod
    def of(cls, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Rows:
        """The rows of some batches."""
        fields = fields_of(schema)
        return cls(
            [title_of(*field) for field in fields],
            [
                [cell(field_of(row[name], part)) for name, part in fields]
                for batch in batches
                for row in rows_json(batch)
            ],
        )


def display(
    query: StreamingQuery | str | os.PathLike[str],
    *,
    operator: int | str | None = None,
    store: str | None = None,
    variable: str | None = None,
    where: str | None = None,
    limit: int = 20,
) -> StateDisplay:
    """The state and the recent checkpoints of a query, as the last expression of a notebook's cell.

    Shows the stores of the newest checkpoint, the timeline of recent checkpoints, and the first rows of the state. If
    the query has several states and none is selected, it shows no rows. The query may be running.

    Args:
        query: a running or stopped query of this session, or its checkpoint location as a path or URL. A query of Spark
            Connect does not tell its location.
        operator: as in `read_state`.
        store: as in `read_state`.
        variable: as in `read_state`.
        where: as in `read_state`.
        limit: maximum number of rows.

    Raises:
        TypeError: the query does not tell its checkpoint location.
        NoCheckpointError: no batch has completed yet.
        StateNotFoundError: no such operator, store or state variable.
        SparkCkptError: the location cannot be read.
    """
    location = _location_of(query)
    place = CheckpointLocation.open(location)
    checkpoints = place.checkpoints()
    if not checkpoints:
        raise NoCheckpointError(location)
    newest = checkpoints[-1]
    history = history_of(place.checkpoint_of(newest).metadata) or ()
    if len(newest.operators) > 1 and operator is None and store is None and variable is None:
        return StateDisplay(location, newest, history, None, False)
    scan = read_state(location, operator=operator, store=store, variable=variable, where=where, limit=limit + 1)
    rows = Rows.of(scan.schema, scan.batches())
    return StateDisplay(
        location, newest, history, Rows(rows.titles, rows.cells[:limit]), has_more=len(rows.cells) > limit
    )


def _location_of(query: Any) -> str:  # noqa: ANN401  (PySpark may not be installed)
    """The checkpoint location of a query."""
    if isinstance(query, (str, os.PathLike)):
        return os.fspath(query)
    java = getattr(query, "_jsq", None)
    if java is None:
        raise TypeError(f"{type(query).__name__} does not tell its checkpoint location: pass the location itself")
    # Spark's `StreamingQueryWrapper` and `StreamExecution`.
    return str(java.streamingQuery().resolvedCheckpointRoot())


def _html_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{text(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{text(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [titles, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    return ["  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip() for line in lines]
