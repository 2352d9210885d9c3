"""Log of the side process: lines on standard error, which the jar passes on to Spark's log.

Each line names the query, the batch and the checkpoint that its thread works on. Level and format follow the settings
of that query, since one process serves all queries of a driver.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import types
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from spark_ckpt.config import CheckpointConfig
from spark_ckpt.figures import iso_time
from spark_ckpt.messages import Trigger
from spark_ckpt.redaction import redacted, redacted_values, shortened

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
"""Levels of Python's logging, by value of the setting `log.level`."""

JSON = "json"
"""Value of the setting `log.format` for structured records."""

MAX_LINE = 16 * 1024
"""Most characters of a line of a message, and of a text in a structured record."""

OURS = "spark_ckpt"
"""Name of the package, and so of the parent of its loggers."""


@dataclass(frozen=True, slots=True)
class LogContext:
    """Work of a thread.

    Args:
        query: name of the query, or its id if it has none.
        location: checkpoint location.
        run: id of the query's run.
        batch: micro-batch.
        level: lowest level to log, of Python's logging.
        as_json: whether each record is one line of JSON.
    """

    query: str
    location: str
    run: str
    batch: int
    level: int = logging.INFO
    as_json: bool = False

    @classmethod
    def of(cls, trigger: Trigger, config: CheckpointConfig) -> LogContext:
        """Context of a batch under the settings of its query."""
        level, as_json = LEVELS[config.log_level], config.log_format == JSON
        query = "".join(c if c.isprintable() else "?" for c in trigger.query_name or trigger.query_id)
        return cls(query, trigger.location, trigger.job, trigger.batch_id, level, as_json)


_current: ContextVar[LogContext | None] = ContextVar("log_context", default=None)


def enter(context: LogContext) -> None:
    """Sets the context of this thread, and of the threads that it starts for cleaning up."""
    _current.set(context)


class RecordFormatter(logging.Formatter):
    """Formatter of both formats.

    Text: each line of a message starts with `LEVEL logger [query, batch, checkpoint]`, because the jar logs line by
    line. JSON: one line per record, whose first field is the level. A record names its checkpoint (`extra`) once that
    has an id, which is when it is durable. Lines and texts have a limit, since a message may quote any text of a user.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Formatted lines of a record."""
        context = _current.get()
        if context is not None and context.as_json:
            # Before JSON escapes them: an escaped secret is not the known one.
            fields = redacted_values(self._fields(record, context))
            return json.dumps({k: shortened(v, MAX_LINE) if isinstance(v, str) else v for k, v in fields.items()})
        start = f"{record.levelname} {record.name}{redacted(_place(record, context))} "
        lines = redacted(super().format(record)).splitlines() or [""]
        return "\n".join(start + shortened(line, MAX_LINE) for line in lines)

    def _fields(self, record: logging.LogRecord, context: LogContext) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "level": record.levelname,
            "time": iso_time(int(record.created * 1000)),
            "logger": record.name,
            "query": context.query,
            "run": context.run,
            "location": context.location,
            "batch": context.batch,
            "message": record.getMessage(),
        }
        if (checkpoint := _checkpoint_of(record)) is not None:
            fields["checkpoint"] = checkpoint
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return fields


def _place(record: logging.LogRecord, context: LogContext | None) -> str:
    if context is None:
        return ""
    checkpoint = _checkpoint_of(record)
    return f" [{context.query}, batch {context.batch}{'' if checkpoint is None else f', checkpoint {checkpoint}'}]"


def _checkpoint_of(record: logging.LogRecord) -> int | None:
    found: int | None = getattr(record, "checkpoint", None)
    return found


def wants_debug() -> bool:
    """True if the query of this thread logs `debug`. Asked before records that would cost each message of a batch."""
    context = _current.get()
    return context is not None and context.level <= logging.DEBUG


def is_wanted(record: logging.LogRecord) -> bool:
    """True if the query of this thread logs the level of a record; without a query, if it is at least `info`."""
    context = _current.get()
    return record.levelno >= (context.level if context is not None else logging.INFO)


def log_uncaught(kind: type[BaseException], error: BaseException | None, traceback: types.TracebackType | None) -> None:
    """Writes an uncaught exception to the log, like all other output of the process."""
    exc_info = None if error is None else (kind, error, traceback)
    logging.getLogger("spark_ckpt.bridge").critical("uncaught %s", kind.__name__, exc_info=exc_info)


def start_log() -> None:
    """Sends the log of the whole process to standard error, uncaught exceptions included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordFormatter())
    handler.addFilter(is_wanted)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger(OURS).setLevel(logging.DEBUG)
    # By default, an uncaught exception is printed without redaction.
    sys.excepthook = log_uncaught
    threading.excepthook = lambda uncaught: log_uncaught(uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback)
