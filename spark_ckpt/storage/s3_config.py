"""Configuration of S3 clients for s3fs: endpoint, credentials and timeouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_ckpt.errors import SettingError
from spark_ckpt.storage.remote import READERS
from spark_ckpt.storage.shared_clients import SHARED_CLIENTS

S3_PROTOCOLS = ("s3", "s3a")

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
    # With concurrent range reads, s3fs requests the size of a file first, and a listing if there is no file: two extra
    # requests.
    return SHARED_CLIENTS.get(OneTryS3FileSystem, options | {"max_concurrency": 1})


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
