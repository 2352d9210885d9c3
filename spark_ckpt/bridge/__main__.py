"""Entry point `python -m spark_ckpt.bridge`, started by the jar on the driver, not by people."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys


def collect_seldom() -> None:
    """Makes the cyclic garbage collector run after 20,000 new containers instead of 700.

    The coordinator holds containers for every subtask but few cycles, and the default would scan all of them several
    times per batch.
    """
    gc.set_threshold(20_000)


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
    # Import only now: an imported library may print as well.
    from spark_ckpt.bridge.log import start_log
    from spark_ckpt.bridge.server import Server
    from spark_ckpt.errors import ProtocolError

    start_log()
    collect_seldom()
    try:
        Server(source, sink).run()
    except ProtocolError as e:
        logging.getLogger("spark_ckpt.bridge").error("%s", e)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
