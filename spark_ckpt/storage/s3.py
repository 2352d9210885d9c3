"""S3 through s3fs: where a client finds it, and how long it waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_ckpt.errors import SettingError

S3_PROTOCOLS = ("s3", "s3a")

S3_CLIENT = {"connect_timeout": 5, "read_timeout": 10, "retries": {"total_max_attempts": 1, "mode": "standard"}}
"""How long a client of S3 waits, in seconds, and that botocore asks once. By default it would ask five times, below the
five tries of s3fs and those of `FsspecStorage`: minutes for an endpoint that is not there, half an hour for one that
accepts requests and says nothing."""


def s3_file_system(bucket: str, settings: Mapping[str, str]) -> Any:  # noqa: ANN401
    """An fsspec file system for `FsspecStorage`.

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
    # A cached listing would break consistent listing, and a shared instance the caches of others. To read a file in
    # parts at a time s3fs asks for its size first, and for a listing if there is no file: two requests more.
    return OneTryS3FileSystem(use_listings_cache=False, skip_instance_cache=True, max_concurrency=1, **options)


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
