"""Messages on the wire: rows of an Arrow stream (docs/protocol.md, section 1.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spark_ckpt import __version__
from spark_ckpt.errors import ProtocolError

PROTOCOL_VERSION = 5
"""Version of the protocol."""

UNASKED = -1
"""`id` of messages that answer no request."""

FILE = "file"
"""`kind` of requests from the side process to the driver."""

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("kind", pa.utf8(), nullable=False),
        pa.field("job", pa.utf8(), nullable=False),
        pa.field("header", pa.utf8(), nullable=False),
        pa.field("index", pa.binary(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)
"""Columns of the streams in both directions."""

_EARLIER_COLUMNS = ["id", "kind", "header", "index", "payload"]
"""Columns of versions 1 to 4."""


# Not frozen: making a frozen one takes three times as long.
@dataclass(slots=True)
class Message:
    """Request, reply or notification. Immutable by convention.

    Args:
        id: number of the request, assigned by the requesting side; `UNASKED` for notifications and reports.
        kind: type of the request; `ok` or `error` for replies, `notify` for notifications, `report` for reports.
        job: job that it is about; empty for replies, and for messages about no job.
        header: JSON object.
        index: key groups and offsets.
        payload: state.
    """

    id: int
    kind: str
    job: str
    header: bytes
    index: bytes = b""
    payload: bytes | memoryview = b""

    @property
    def size(self) -> int:
        """Bytes of the header, the index and the payload."""
        return len(self.header) + len(self.index) + len(self.payload)


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def check_schema(schema: pa.Schema) -> None:
    """Checks that a stream has the columns of `SCHEMA`.

    Raises:
        ProtocolError: its columns differ.
    """
    if schema.names == _EARLIER_COLUMNS:
        raise ProtocolError(
            f"the jar speaks an earlier version of the protocol than {PROTOCOL_VERSION}, the version of the Python "
            f"package {__version__}: install both from the same release"
        )
    if [(field.name, field.type) for field in schema] != [(field.name, field.type) for field in SCHEMA]:
        raise ProtocolError(f"the stream has the columns {schema.names} instead of those in docs/protocol.md")


def to_batch(messages: Sequence[Message]) -> pa.RecordBatch:
    """Encodes messages as a record batch, one per row.

    Raises:
        ProtocolError: a column exceeds 2 GiB.
    """
    ids = np.array([message.id for message in messages], np.int64)
    columns = [
        pa.Array.from_buffers(pa.int64(), len(messages), [None, pa.py_buffer(ids)]),
        _column(pa.string(), [message.kind.encode() for message in messages]),
        _column(pa.string(), [message.job.encode() for message in messages]),
        _column(pa.string(), [message.header for message in messages]),
        _column(pa.binary(), [message.index for message in messages]),
        _column(pa.binary(), [message.payload for message in messages]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _column(kind: pa.DataType, values: Sequence[bytes | memoryview]) -> pa.Array:
    # `pa.array` imports pandas to check its input for pandas objects, which adds half a second to each query's start.
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise ProtocolError(f"a column of {ends[-1]} bytes does not fit into one record batch")
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def from_batch(batch: pa.RecordBatch) -> Iterator[Message]:
    """Decodes the messages of a record batch. Payloads are views of its memory, which avoids large copies.

    Raises:
        ProtocolError: a column has a null.
    """
    if any(column.null_count for column in batch.columns):
        raise ProtocolError("a message has a null in one of its columns")
    columns = (_views(column) for column in batch.columns[1:])
    for number, kind, job, header, index, payload in zip(batch.column(0).to_pylist(), *columns, strict=True):
        yield Message(number, _text(kind), _text(job), bytes(header), bytes(index), payload)


def _text(view: memoryview) -> str:
    return str(view, "utf-8", "replace")  # Arrow does not check it


def _views(column: pa.Array) -> list[memoryview]:
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).tolist()
    memory = memoryview(data) if data is not None else memoryview(b"")
    return [memory[start:end] for start, end in pairwise(ends)]
