"""Where the coordinator keeps its files: a small contract over the file systems that fsspec reaches."""

from __future__ import annotations

from spark_ckpt.storage.base import CreateOutcome, CreateResult, FileInfo, Storage, checked_name, resolve_relative
from spark_ckpt.storage.local import LocalStorage
from spark_ckpt.storage.remote import FsspecStorage
from spark_ckpt.storage.resolve import SUPPORTED_SCHEMES, resolve
from spark_ckpt.storage.s3 import s3_options

__all__ = [
    "SUPPORTED_SCHEMES",
    "CreateOutcome",
    "CreateResult",
    "FileInfo",
    "FsspecStorage",
    "LocalStorage",
    "Storage",
    "checked_name",
    "resolve",
    "resolve_relative",
    "s3_options",
]
