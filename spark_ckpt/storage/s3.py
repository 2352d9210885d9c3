"""S3 through s3fs: where a client finds it, and how long it waits."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from spark_ckpt.errors import SettingError
from spark_ckpt.storage.remote import READERS

S3_PROTOCOLS = ("s3", "s3a")

_MOST_RECENT = 4

_AWS_FILES = (("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), ("AWS_CONFIG_FILE", "~/.aws/config"))

S3_CLIENT = {
    "connect_timeout": 5,
    "read_timeout": 10,
    "retries": {"total_max_attempts": 1, "mode": "standard"},
    "max_pool_connections": READERS,
}
"""Waiting times of a client of S3, in seconds. botocore asks once: five times, its default, below the five tries of
s3fs and those of `FsspecStorage`, would be minutes for an endpoint that is not there, half an hour for one that accepts
requests and says nothing. It has as many connections as there are readers, made as needed, and not botocore's 10."""


def s3_file_system(bucket: str, settings: Mapping[str, str]) -> Any:  # noqa: ANN401
    """An fsspec file system for `FsspecStorage`, shared by all locations with the same endpoint and credentials.

    Args:
        bucket: the one that it is for.
        settings: Hadoop's, see `s3_options`.

    Raises:
        ImportError: s3fs is not installed.
        SettingError: a setting has an impossible value.
    """
    from spark_ckpt.storage.s3_client import OneTryS3FileSystem

    options = s3_options(bucket, settings)
    options["config_kwargs"] = client_config() | options.get("config_kwargs", {})
    return SHARED_CLIENTS.get(OneTryS3FileSystem, options)


def _new_file_system(kind: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    # A cached listing would break consistent listing, and fsspec's cache of instances never lets one go. To read a
    # file in parts at a time s3fs asks for its size first, and for a listing if there is no file: two requests more.
    return kind(use_listings_cache=False, skip_instance_cache=True, max_concurrency=1, **options)


class SharedClients:
    """File systems of S3 by what they are made from: a client takes 13 MiB, and a driver may run many queries.

    One is kept as long as a storage uses it. The few that were used last are kept longer, so that short runs one after
    another make one client. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._recent: OrderedDict[str, Any] = OrderedDict()

    def get(self, kind: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """The file system of a class with these options; made if there is none.

        A client reads the environment and AWS's files once, so what they say now belongs to what it is made from.
        """
        made_from = (id(kind), sorted(options.items(), key=lambda item: item[0]), _surroundings())
        key = hashlib.sha256(repr(made_from).encode()).hexdigest()  # credentials are not kept a second time
        with self._lock:
            if (file_system := self._used.get(key)) is None:
                file_system = self._used[key] = _new_file_system(kind, options)
            self._recent[key] = file_system
            self._recent.move_to_end(key)
            while len(self._recent) > _MOST_RECENT:
                self._recent.popitem(last=False)
            return file_system


SHARED_CLIENTS = SharedClients()
"""The clients of this process."""


def _surroundings() -> list[object]:
    import fsspec

    environment = sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_"))
    configured = [sorted(fsspec.config.conf.get(protocol, {}).items()) for protocol in S3_PROTOCOLS]
    return [environment, configured, [_changed(*file) for file in _AWS_FILES]]


def _changed(variable: str, default: str) -> int:
    try:
        return Path(os.environ.get(variable, default)).expanduser().stat().st_mtime_ns
    except OSError:
        return 0


def client_config() -> dict[str, Any]:
    """Settings of botocore's client: ours, and fsspec's configuration over them, which any given to s3fs would hide."""
    import fsspec

    client: dict[str, Any] = dict(S3_CLIENT)
    for protocol in S3_PROTOCOLS:
        client |= fsspec.config.conf.get(protocol, {}).get("config_kwargs", {})
    return client


def s3_options(bucket: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `s3fs.S3FileSystem` for Hadoop's S3A settings. What is not set is left to the usual AWS chain.

    Args:
        bucket: settings `fs.s3a.bucket.<bucket>.x` come before `fs.s3a.x`, as in S3A.
        settings: by their Hadoop names.

    Raises:
        SettingError: a setting that is true or false has another value.
    """

    def get(name: str) -> str | None:
        value = settings.get(f"fs.s3a.bucket.{bucket}.{name}", settings.get(f"fs.s3a.{name}"))
        return value.strip() if value and value.strip() else None

    def flag(name: str, default: bool) -> bool:
        value = get(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise SettingError(f"fs.s3a.{name}", f"'{value}' is neither true nor false")
        return value.lower() == "true"

    options: dict[str, Any] = {}
    for option, name in (("key", "access.key"), ("secret", "secret.key"), ("token", "session.token")):
        if (value := get(name)) is not None:
            options[option] = value
    client: dict[str, Any] = {}
    if (endpoint := get("endpoint")) is not None:
        secure = flag("connection.ssl.enabled", True)
        options["endpoint_url"] = endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}"
    if (region := get("endpoint.region")) is not None:
        client["region_name"] = region
    if client:
        options["client_kwargs"] = client
    if flag("path.style.access", False):
        options["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    return options
