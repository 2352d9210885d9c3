"""Storage of the coordinator's files: a small contract over file systems reached through fsspec or the driver."""

from __future__ import annotations

from spark_ckpt.storage.base import CreateOutcome, CreateResult, FileInfo, Storage, checked_name
from spark_ckpt.storage.copying import copy_file
from spark_ckpt.storage.creating import ExclusiveCreate, Whose, create_and_find, create_or_find
from spark_ckpt.storage.hadoop import FRAME_BYTES, HadoopCalls, HadoopStorage
from spark_ckpt.storage.local import LocalStorage
from spark_ckpt.storage.notes import read_note
from spark_ckpt.storage.remote import FsspecStorage, MemoryStorage
from spark_ckpt.storage.request import Request
from spark_ckpt.storage.resolve import SUPPORTED_SCHEMES, resolve, storage_on
from spark_ckpt.storage.s3_config import s3_options
from spark_ckpt.storage.s3_storage import S3Storage
from spark_ckpt.storage.stable_reads import MAX_READINGS, until_stable
from spark_ckpt.storage.trees import delete_tree, files_below

__all__ = [
    "FRAME_BYTES",
    "MAX_READINGS",
    "SUPPORTED_SCHEMES",
    "CreateOutcome",
    "CreateResult",
    "ExclusiveCreate",
    "FileInfo",
    "FsspecStorage",
    "HadoopCalls",
    "HadoopStorage",
    "LocalStorage",
    "MemoryStorage",
    "Request",
    "S3Storage",
    "Storage",
    "Whose",
    "checked_name",
    "copy_file",
    "create_and_find",
    "create_or_find",
    "delete_tree",
    "files_below",
    "read_note",
    "resolve",
    "s3_options",
    "storage_on",
    "until_stable",
]
