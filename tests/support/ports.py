"""Free ports for servers that tests start."""

from __future__ import annotations

import os
import random
import socket
from contextlib import suppress

_PORTS = range(20_000, 32_000)
_WORKERS = 16
"""Number of pytest-xdist processes with separate ports."""

_given: set[int] = set()


def free_port() -> int:
    """A port likely to stay free until the server takes it, and between two starts.

    Avoids the ports from 32768 on, which the system gives to connections and other servers, those of other test
    processes, and those of earlier calls: a server that asks for two ports before it binds any gets different ones.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    while True:
        port = random.SystemRandom().choice(_PORTS[worker::_WORKERS])
        if port in _given:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _given.add(port)
            return port
