"""Clients of object stores that the storages of a process share."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

_MAX_RECENT = 4

_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR_")
"""Beginnings of the environment variables that clients read."""

_PROTOCOLS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az")
"""Schemes with options in fsspec's configuration."""

_AWS_FILES = (("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), ("AWS_CONFIG_FILE", "~/.aws/config"))


def _new_file_system(kind: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    # Cached listings would break consistent listing, and fsspec's instance cache never evicts.
    return kind(use_listings_cache=False, skip_instance_cache=True, **options)


class SharedClients:
    """Cache of file systems by their configuration: a client of S3 takes 13 MiB, and a driver may run many queries.

    A file system is kept while a storage uses it. The few most recently used ones are kept longer, so that short
    consecutive runs share one client. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._recent: OrderedDict[str, Any] = OrderedDict()

    def get(self, kind: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """File system of a class with the given options; created if absent.

        A client reads the environment and its configuration files only once, so their current state is part of the
        cache key.
        """
        made_from = (id(kind), sorted(options.items(), key=lambda item: item[0]), _surroundings())
        key = hashlib.sha256(repr(made_from).encode()).hexdigest()  # avoids a second copy of the credentials
        with self._lock:
            if (file_system := self._used.get(key)) is None:
                file_system = self._used[key] = _new_file_system(kind, options)
            self._recent[key] = file_system
            self._recent.move_to_end(key)
            while len(self._recent) > _MAX_RECENT:
                self._recent.popitem(last=False)
            return file_system


SHARED_CLIENTS = SharedClients()
"""Clients of this process."""


def _surroundings() -> list[object]:
    import fsspec

    environment = sorted((name, value) for name, value in os.environ.items() if name.startswith(_VARIABLES))
    configured = [sorted(fsspec.config.conf.get(protocol, {}).items()) for protocol in _PROTOCOLS]
    return [environment, configured, [_changed(*file) for file in _AWS_FILES]]


def _changed(variable: str, default: str) -> int:
    try:
        return Path(os.environ.get(variable, default)).expanduser().stat().st_mtime_ns
    except OSError:
        return 0
