"""The request for a rescale of a running query, `ckpt/rescale.json`, and its answer (docs/protocol.md, section 7).

A command creates the file. The driver that runs the query looks for it after its batches, and replaces it by the same
request with an answer. The command reads the answer and deletes the file.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from spark_ckpt.checkpoint.layout import RESCALE_REQUEST, in_location
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.storage import Storage, create_or_find, read_note

REQUEST = in_location(RESCALE_REQUEST)
"""Name of the file, relative to the checkpoint location."""

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class RescaleAnswer:
    """The driver's answer.

    Args:
        refused: why the query keeps its number of partitions; None if it has the new one.
        batch_id: first batch with the new number; None if it is refused, or had the number already.
        before: number of partitions before; None if it is refused.
    """

    refused: str | None = None
    batch_id: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class RescaleRequest:
    """A request for another number of partitions.

    Args:
        partitions: the number.
        asked_ms: when it was made, in milliseconds since 1970 UTC.
        token: name of the request.
        answer: the driver's answer; None before it has one.
    """

    partitions: int
    asked_ms: int
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    answer: RescaleAnswer | None = None

    def encode(self) -> bytes:
        """Content of the file."""
        answer = self.answer
        fields = {
            "format": _FORMAT,
            "token": self.token,
            "partitions": self.partitions,
            "asked_ms": self.asked_ms,
            "answer": answer and {"refused": answer.refused, "batch_id": answer.batch_id, "before": answer.before},
        }
        return json.dumps(fields).encode()


def read_request(storage: Storage) -> RescaleRequest | None:
    """The request of a location; None without one.

    Raises:
        CheckpointError: the file is damaged, or of a later release.
        StorageError: it cannot be read.
    """
    try:
        return read_note(storage, REQUEST, _FORMAT, "a request for a rescale", _parsed, way_out=". Delete it")
    except StateFileNotFoundError:
        return None


def read_again(storage: Storage, request: RescaleRequest) -> RescaleRequest | None:
    """A request as it is now, perhaps answered; None if it is gone, or another one is in its place.

    Raises:
        CheckpointError, StorageError: as in `read_request`.
    """
    there = read_request(storage)
    return there if there is not None and there.token == request.token else None


def _parsed(fields: dict[str, Any]) -> RescaleRequest:
    request = RescaleRequest(_number(fields, "partitions"), _number(fields, "asked_ms"), str(fields["token"]))
    if (answer := fields["answer"]) is None:
        return request
    refused = answer["refused"]
    numbers = [None if answer[name] is None else _number(answer, name) for name in ("batch_id", "before")]
    return replace(request, answer=RescaleAnswer(None if refused is None else str(refused), *numbers))


def _number(fields: dict[str, Any], name: str) -> int:
    value = fields[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return value


def create_request(storage: Storage, request: RescaleRequest) -> bool:
    """Creates the file; False if there is one.

    Raises:
        StorageError: the file could not be created, or the outcome is unknown.
    """
    return create_or_find(storage, REQUEST, request.encode())


def answer_request(storage: Storage, request: RescaleRequest, answer: RescaleAnswer) -> None:
    """Replaces the file by the answered request, unless it is gone or has become another one.

    Raises:
        CheckpointError, StorageError: the file cannot be read or written.
    """
    there = read_again(storage, request)
    if there is not None and there.answer is None:
        storage.write_atomic(REQUEST, replace(request, answer=answer).encode())


def delete_request(storage: Storage) -> None:
    """Deletes the file, if it exists.

    Raises:
        StorageError: it cannot be deleted.
    """
    storage.delete(REQUEST)
