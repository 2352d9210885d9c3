"""In-memory storages, each with a location of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from fsspec.implementations.memory import MemoryFileSystem

from spark_ckpt.storage import MemoryStorage
from tests.support.clocks import NoClock


def memory_storages() -> Callable[[str], MemoryStorage]:
    place = f"/{uuid.uuid4().hex}"
    return lambda name: MemoryStorage(MemoryFileSystem(), f"{place}/{name}", f"memory:/{place}/{name}", NoClock())


def memory_storage() -> MemoryStorage:
    return memory_storages()("location")
