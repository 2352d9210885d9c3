"""Configuration of S3 clients for s3fs: endpoint, credentials and timeouts."""

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

_MAX_RECENT = 4

_AWS_FILES = (("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), ("AWS_CONFIG_FILE", "~/.aws/config"))

S3_CLIENT = {
    "connect_timeout": 5,
    "read_timeout": 10,
    "retries": {"total_max_attempts": 1, "mode": "standard"},
    "max_pool_connections": READERS,
}
"""botocore settings of an S3 client; timeouts in seconds. botocore does not retry: its default of five attempts,
multiplied by the five of s3fs and those of `FsspecStorage`, would take minutes for an endpoint that does not exist, and
half an hour for one that accepts requests but never responds. The pool has one connection per reader, opened on
demand, instead of botocore's 10."""


def s3_file_system(bucket: str, settings: Mapping[str, str]) -> Any:  # noqa: ANN401
    """fsspec file system for `FsspecStorage`, shared by all locations with the same endpoint and credentials.

    Args:
        bucket: name of the bucket.
        settings: Hadoop settings, see `s3_options`.

    Raises:
        ImportError: s3fs is not installed.
        SettingError: a setting has an invalid value.
    """
    from spark_ckpt.storage.s3_client import OneTryS3FileSystem

    options = s3_options(bucket, settings)
    options["config_kwargs"] = client_config() | options.get("config_kwargs", {})
    return SHARED_CLIENTS.get(OneTryS3FileSystem, options)


def _new_file_system(kind: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    # Cached listings would break consistent listing, and fsspec's instance cache never evicts. With concurrent range
    # reads, s3fs requests the size of a file first, and a listing if there is no file: two extra requests.
    return kind(use_listings_cache=False, skip_instance_cache=True, max_concurrency=1, **options)


class SharedClients:
    """Cache of S3 file systems by their configuration: a client takes 13 MiB, and a driver may run many queries.

    A file system is kept while a storage uses it. The few most recently used ones are kept longer, so that short
    consecutive runs share one client. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._recent: OrderedDict[str, Any] = OrderedDict()

    def get(self, kind: Any, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """File system of a class with the given options; created if absent.

        A client reads the environment and the AWS configuration files only once, so their current state is part of the
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
"""S3 clients of this process."""


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
    """botocore settings of a client: ours, overridden by fsspec's configuration, which `config_kwargs` passed to s3fs
    would otherwise replace."""
    import fsspec

    client: dict[str, Any] = dict(S3_CLIENT)
    for protocol in S3_PROTOCOLS:
        client |= fsspec.config.conf.get(protocol, {}).get("config_kwargs", {})
    return client


def s3_options(bucket: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `s3fs.S3FileSystem` for Hadoop's S3A settings. The default AWS chain supplies unset ones.

    Args:
        bucket: name of the bucket; `fs.s3a.bucket.<bucket>.x` overrides `fs.s3a.x`, as in S3A.
        settings: settings by their Hadoop names.

    Raises:
        SettingError: a boolean setting is neither true nor false.
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
