"""Messages on the wire: rows of an Arrow stream (docs/protocol.md, section 1.1)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pyarrow as pa

from spark_ckpt import __version__
from spark_ckpt.errors import ProtocolError

PROTOCOL_VERSION = 5
"""Version of the protocol."""

UNASKED = -1
"""`id` of messages that answer no request."""

FILE = "file"
"""`kind` of requests from the side process to the driver."""

_INT64, _STRING, _BINARY = pa.int64(), pa.utf8(), pa.binary()

SCHEMA = pa.schema(
    [
        pa.field("id", _INT64, nullable=False),
        pa.field("kind", _STRING, nullable=False),
        pa.field("job", _STRING, nullable=False),
        pa.field("header", _STRING, nullable=False),
        pa.field("index", _BINARY, nullable=False),
        pa.field("payload", _BINARY, nullable=False),
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
    ids = array("q", [message.id for message in messages])
    columns = [
        pa.Array.from_buffers(_INT64, len(messages), [None, pa.py_buffer(ids)]),
        _column(_STRING, [message.kind.encode() for message in messages]),
        _column(_STRING, [message.job.encode() for message in messages]),
        _column(_STRING, [message.header for message in messages]),
        _column(_BINARY, [message.index for message in messages]),
        _column(_BINARY, [message.payload for message in messages]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _column(kind: pa.DataType, values: Sequence[bytes | memoryview]) -> pa.Array:
    # `pa.array` imports pandas to check its input for pandas objects, which adds half a second to each query's start.
    # Most batches have a single message, for which arrays of numpy would take twice as long.
    try:
        ends = array("i", accumulate(map(len, values), initial=0))
    except OverflowError:
        size = sum(map(len, values))
        raise ProtocolError(f"a column of {size} bytes does not fit into one record batch") from None
    data = values[0] if len(values) == 1 else b"".join(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def from_batch(batch: pa.RecordBatch) -> Iterator[Message]:
    """Decodes the messages of a record batch. Payloads are views of its memory, which avoids large copies.

    Raises:
        ProtocolError: a column has a null.
    """
    ids, *columns = batch.columns
    if ids.null_count or any(column.null_count for column in columns):
        raise ProtocolError("a message has a null in one of its columns")
    for number, kind, job, header, index, payload in zip(ids.to_pylist(), *map(_views, columns), strict=True):
        yield Message(number, _text(kind), _text(job), bytes(header), bytes(index), payload)


def _text(view: memoryview) -> str:
    return str(view, "utf-8", "replace")  # Arrow does not check it


def _views(column: pa.Array) -> list[memoryview]:
    if not len(column):
        return []
    _, offsets, data = column.buffers()
    ends = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1]
    memory = memoryview(data) if data is not None else memoryview(b"")
    return [memory[start:end] for start, end in pairwise(ends)]
