"""What `inspect --streams` tells of the streams of a checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata import OperatorState
from spark_ckpt.metadata.streams import Datum, StateStream, UnknownSerializerError


@dataclass(slots=True)
class StateReport:
    """One state of a stream.

    Args:
        name: its name; of a state of ours the column family.
        kind: what kind of state it is, in Flink's terms: such as `VALUE`, `PRIORITY_QUEUE`, `UNION`.
        serializers: names of its serializers, by what they serialize.
        can_be_read: whether its entries can be told apart.
        removed: entries of a delta that say that a key is gone; they count as entries too.
        size: bytes of the entries.
        samples: the first entries, each by the names of its parts.
    """

    name: str
    kind: str
    serializers: Mapping[str, str] = field(default_factory=dict)
    can_be_read: bool = True
    removed: int = 0
    size: int = 0
    samples: list[Mapping[str, Datum]] = field(default_factory=list)
    _entries: int = 0
    _by_key_group: Counter[int] = field(default_factory=Counter)

    @property
    def entries(self) -> int | None:
        """Number of entries; None if they cannot be told apart."""
        return self._entries if self.can_be_read else None

    @property
    def entries_by_key_group(self) -> Mapping[int, int]:
        """Number of entries of each key group that has some, ascending; empty for state without key groups."""
        return dict(sorted(self._by_key_group.items()))

    def add(self, sample: Mapping[str, Datum], most_samples: int, key_group: int | None = None) -> None:
        """Counts an entry."""
        self._entries += 1
        self.size += sum(len(datum.raw) for datum in sample.values())
        if key_group is not None:
            self._by_key_group[key_group] += 1
        if len(self.samples) < most_samples:
            self.samples.append(sample)


@dataclass(slots=True)
class StreamReport:
    """One stream, or several that make up one handle.

    Args:
        operator: the operator.
        operator_name: its name, if there is one.
        subtask: index of the subtask.
        role: what the handle holds, such as `managed keyed state`.
        form: how its bytes are laid out.
        path: the file, or the name of inline state; of several the first.
        size: bytes of the stream.
        compressed: whether the data behind the header is.
        key_serializer: name of the serializer of all keys.
        states: what is in it.
        errors: what is wrong with it.
    """

    operator: OperatorState
    operator_name: str | None
    subtask: int
    role: str
    form: str
    path: str | None = None
    size: int = 0
    compressed: bool = False
    key_serializer: str | None = None
    states: list[StateReport] = field(default_factory=list)
    errors: list[SparkCkptError] = field(default_factory=list)

    @property
    def has_failed(self) -> bool:
        """Whether something is missing, wrong or not allowed. A serializer that is not known is a limit of ours."""
        return any(not isinstance(error, UnknownSerializerError) for error in self.errors)

    def opened(self, stream: StateStream) -> None:
        """Notes where the bytes are."""
        self.path = self.path or stream.path
        self.size += stream.size

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Notes an error of ours instead of raising it: what was read before stays."""
        try:
            yield
        except SparkCkptError as error:
            self.errors.append(error)


class UnreadStreamsError(SparkCkptError):
    """Streams of a checkpoint could not be read to their end. What is wrong with each was told where it belongs.

    Attributes:
        path: the checkpoint's `_metadata`.
        unread: how many streams.
        streams: of how many.
    """

    def __init__(self, path: str, unread: int, streams: int) -> None:
        super().__init__(f"{path}: {unread} of {streams} streams could not be read; the reason stands with each")
        self.path = path
        self.unread = unread
        self.streams = streams
