"""HDFS by its web address (WebHDFS), for commands, which have no driver to ask."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spark_ckpt.storage.errors import HadoopError

_PAST_END = "out of the range", "Cannot seek after EOF"
"""In the errors for an offset at or after the end of a file (`NamenodeWebHdfsMethods`, and a DataNode)."""

_FAILURES: Mapping[str, type[OSError]] = {
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
    "AccessControlException": PermissionError,
    "SecurityException": PermissionError,
}


class WebHdfsCalls:
    """Hadoop's operations as requests to the NameNode's web address: `HadoopCalls` without a JVM.

    fsspec's client has connection, user and credentials. Its own files would overwrite what they should create, and
    show a file before it is whole; with these operations, `HadoopStorage` writes a temporary file and renames it. A
    file that is written is closed, but not synced: DataNodes that lose power at once may lose it.

    Args:
        client: fsspec's `WebHDFS`.
        location: the location of the storage.
        path: its path on the file system.
    """

    def __init__(self, client: Any, location: str, path: str) -> None:  # noqa: ANN401  (fsspec has no types)
        self._client = client
        self._location = location.rstrip("/")
        self._path = path.rstrip("/")

    def ask(
        self,
        operation: str,
        path: str,
        payload: bytes | memoryview = b"",
        **fields: Any,  # noqa: ANN401
    ) -> tuple[Mapping[str, Any], bytes | memoryview]:
        """Executes an operation on a path below the location.

        Raises:
            FileNotFoundError, FileExistsError, PermissionError: as their names say.
            OSError: any other failure.
        """
        here = self._on_namenode(path)
        with _failures(path):
            match operation:
                case "read":
                    return {}, self._read(here, fields["offset"], fields["length"])
                case "write":
                    self._write(here, bytes(payload), is_first=fields["first"])
                case "rename":
                    self._rename(here, self._on_namenode(fields["target"]), overwrite=fields["overwrite"])
                case "delete":
                    return {"deleted": self._json("DELETE", "delete", here, recursive="false")["boolean"]}, b""
                case "list":
                    found = self._json("LISTSTATUS", "get", here)["FileStatuses"]["FileStatus"]
                    return {"files": [_entry(each["pathSuffix"], each) for each in found]}, b""
                case "status":
                    status = self._json("GETFILESTATUS", "get", here)["FileStatus"]
                    return _entry(posixpath.basename(here), status), b""
                case _:
                    raise ValueError(f"WebHDFS has no operation {operation}")
        return {}, b""

    def _on_namenode(self, path: str) -> str:
        return self._path + path.removeprefix(self._location)

    def _read(self, path: str, offset: int, length: int) -> bytes:
        try:
            return bytes(self._client._call("OPEN", path=path, offset=offset, length=length).content)
        except RuntimeError as e:
            if any(words in str(e) for words in _PAST_END):
                return b""
            raise

    def _write(self, path: str, data: bytes, *, is_first: bool) -> None:
        operation, method = ("CREATE", "put") if is_first else ("APPEND", "post")
        more = {"overwrite": "true"} if is_first else {}
        asked = self._client._call(operation, method, path, redirect=False, **more)
        datanode = self._client._apply_proxy(asked.headers["Location"])
        headers = {"content-type": "application/octet-stream"}
        done = self._client.session.request(method.upper(), datanode, data=data, headers=headers)
        _raise_remote(path, done)
        done.raise_for_status()

    def _rename(self, path: str, target: str, *, overwrite: bool) -> None:
        if overwrite:
            self._client._call("RENAME", "put", path, destination=target, renameoptions="OVERWRITE")
        elif not self._json("RENAME", "put", path, destination=target)["boolean"]:
            self._json("GETFILESTATUS", "get", target)  # if it is not there, the temporary file is missing
            raise FileExistsError(target)

    def _json(self, operation: str, method: str, path: str, **parameters: str) -> Any:  # noqa: ANN401
        return self._client._call(operation, method, path, **parameters).json()


def _entry(name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "size": status["length"],
        "directory": status["type"] == "DIRECTORY",
        "modified_ms": status["modificationTime"],
    }


def _raise_remote(path: str, response: Any) -> None:  # noqa: ANN401  (of requests)
    """Raises what a DataNode says of a failure; the client does so for the NameNode only."""
    try:
        said = response.json()["RemoteException"]
    except (ValueError, KeyError, TypeError):
        return
    failure = HadoopError(path, str(said["exception"]), str(said["message"]))
    kind = _FAILURES.get(said["exception"])
    raise failure if kind is None else kind(str(failure))


@contextmanager
def _failures(path: str) -> Iterator[None]:
    """Errors of the client, as those of Hadoop."""
    try:
        yield
    except (RuntimeError, ValueError) as e:
        raise HadoopError(path, type(e).__name__, str(e)) from e
