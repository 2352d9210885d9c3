"""Hadoop file systems in memory: the answers of the driver's `HadoopFiles`, without a JVM."""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Mapping
from typing import Any


class MemoryHadoop:
    """Files and directories by path. `operations` lists the requested operations, each with its file name.

    Args:
        class_name: name of the file system's class.
        is_conditional: whether it can create a file on the condition that there is none.
    """

    def __init__(
        self, class_name: str = "org.apache.hadoop.hdfs.DistributedFileSystem", is_conditional: bool = False
    ) -> None:
        self.class_name, self.is_conditional = class_name, is_conditional
        self._uploads: dict[str, bytes] = {}
        self.files: dict[str, bytes] = {}
        self.directories: set[str] = set()
        self.operations: list[tuple[str, str]] = []
        self.payloads: list[int] = []
        """Size in bytes of each message payload that carries part of a file."""
        self._modified: dict[str, float] = {}
        self._lock = threading.Lock()

    def ask(
        self, operation: str, path: str, payload: bytes | memoryview = b"", **fields: Any
    ) -> tuple[Mapping[str, Any], bytes]:
        with self._lock:
            self.operations.append((operation, posixpath.basename(path)))
            answer: tuple[Mapping[str, Any], bytes] = getattr(self, f"_{operation}")(path, bytes(payload), **fields)
        self.payloads += [len(part) for part in (payload, answer[1]) if part]
        return answer

    def _read(self, path: str, _: bytes, offset: int, length: int) -> tuple[Mapping[str, Any], bytes]:
        return {}, self._existing(path)[offset : offset + length]

    def _file_system(self, path: str, _: bytes) -> tuple[Mapping[str, Any], bytes]:
        return {"class": self.class_name, "conditional_create": self.is_conditional}, b""

    def _write(
        self, path: str, payload: bytes, first: bool, last: bool, exclusive: str | None = None, upload: str = ""
    ) -> tuple[Mapping[str, Any], bytes]:
        if exclusive is not None:
            assert first != (upload in self._uploads), path
            content = self._uploads.pop(upload, b"") + payload
            if not last:
                self._uploads[upload] = content
            elif path in self.files:
                raise FileExistsError(path)
            else:
                self._make_directories(posixpath.dirname(path))
                self._put(path, content)
            return {}, b""
        assert first != (path in self.files), path
        self._make_directories(posixpath.dirname(path))
        self._put(path, self.files.get(path, b"") + payload)
        return {}, b""

    def _rename(self, path: str, _: bytes, target: str, overwrite: bool) -> tuple[Mapping[str, Any], bytes]:
        content = self._existing(path)
        if target in self.files and not overwrite:
            raise FileExistsError(target)
        self._put(target, content)
        del self.files[path]
        return {}, b""

    def _delete(self, path: str, _: bytes) -> tuple[Mapping[str, Any], bytes]:
        if path in self.directories:
            if any(posixpath.dirname(other) == path for other in [*self.files, *self.directories]):
                raise OSError(f"{path} is not empty")
            self.directories.remove(path)
            return {"deleted": True}, b""
        return {"deleted": self.files.pop(path, None) is not None}, b""

    def _list(self, path: str, _: bytes) -> tuple[Mapping[str, Any], bytes]:
        if path not in self.directories:
            raise FileNotFoundError(path)
        below = [other for other in [*self.files, *self.directories] if posixpath.dirname(other) == path]
        return {"files": [self._describe(other) for other in below]}, b""

    def _status(self, path: str, _: bytes) -> tuple[Mapping[str, Any], bytes]:
        if path not in self.directories:
            self._existing(path)
        return self._describe(path), b""

    def _existing(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def _put(self, path: str, content: bytes) -> None:
        self.files[path] = content
        self._modified[path] = time.time()

    def _make_directories(self, path: str) -> None:
        while path.count("/") > 2:
            self.directories.add(path)
            path = posixpath.dirname(path)

    def _describe(self, path: str) -> dict[str, Any]:
        return {
            "name": posixpath.basename(path),
            "size": len(self.files.get(path, b"")),
            "directory": path in self.directories,
            "modified_ms": int(self._modified.get(path, 0) * 1000),
        }
