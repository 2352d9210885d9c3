"""Entry point `python -m spark_ckpt.bridge`, started by the jar on the driver, not by people."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import types

from spark_ckpt.redaction import redacted


class LineFormatter(logging.Formatter):
    """Formatter that starts each line of a message with `LEVEL logger`, because the jar logs line by line."""

    def format(self, record: logging.LogRecord) -> str:
        """Formatted lines of a record."""
        start = f"{record.levelname} {record.name} "
        return "\n".join(start + line for line in redacted(super().format(record)).splitlines() or [""])


def collect_seldom() -> None:
    """Makes the cyclic garbage collector run after 20,000 new containers instead of 700.

    The coordinator holds containers for every subtask but few cycles, and the default would scan all of them several
    times per batch.
    """
    gc.set_threshold(20_000)


def log_uncaught(kind: type[BaseException], error: BaseException | None, traceback: types.TracebackType | None) -> None:
    """Writes an uncaught exception to the log, like all other output of the process."""
    exc_info = None if error is None else (kind, error, traceback)
    logging.getLogger("spark_ckpt.bridge").critical("uncaught %s", kind.__name__, exc_info=exc_info)


def main() -> int:
    """Serves the driver until standard input ends.

    Returns:
        Exit code: 0, or 2 if standard input is not a stream of messages.
    """
    # Other code in this process that prints or reads must not touch the two streams.
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # Ctrl+C in a shell reaches the whole process group; the driver decides how to react.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # By default, an uncaught exception is printed without redaction.
    sys.excepthook = log_uncaught
    threading.excepthook = lambda uncaught: log_uncaught(uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback)
    # Import only now: an imported library may print as well.
    from spark_ckpt.bridge.server import Server
    from spark_ckpt.errors import ProtocolError

    collect_seldom()
    try:
        Server(source, sink).run()
    except ProtocolError as e:
        logging.getLogger("spark_ckpt.bridge").error("%s", e)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
