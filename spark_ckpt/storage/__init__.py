"""Where the coordinator keeps its files: a small contract over the file systems that fsspec or the driver reaches."""

from __future__ import annotations

from spark_ckpt.storage.base import CreateOutcome, CreateResult, FileInfo, Storage, checked_name, resolve_relative
from spark_ckpt.storage.copying import copy_file
from spark_ckpt.storage.creating import create_or_find
from spark_ckpt.storage.hadoop import FRAME_BYTES, HadoopCalls, HadoopStorage
from spark_ckpt.storage.local import LocalStorage
from spark_ckpt.storage.remote import FsspecStorage
from spark_ckpt.storage.resolve import SUPPORTED_SCHEMES, resolve
from spark_ckpt.storage.s3 import s3_options

__all__ = [
    "FRAME_BYTES",
    "SUPPORTED_SCHEMES",
    "CreateOutcome",
    "CreateResult",
    "FileInfo",
    "FsspecStorage",
    "HadoopCalls",
    "HadoopStorage",
    "LocalStorage",
    "Storage",
    "checked_name",
    "copy_file",
    "create_or_find",
    "resolve",
    "resolve_relative",
    "s3_options",
]
