"""Reports on the state streams of a checkpoint, for `inspect --streams`."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby

from rich.text import Text
from rich.tree import Tree

from spark_ckpt.cli.formatting import plain, shortened
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import Json, JsonObject, describe_error
from spark_ckpt.cli.results.sources import position_line
from spark_ckpt.cli.terminal import Table, number_column, text_column
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.figures import count, human_size
from spark_ckpt.flink.streams import Datum, StateStream, UnknownSerializerError
from spark_ckpt.flink.streams.values import NAMED, RowData
from spark_ckpt.metadata import OperatorState
from spark_ckpt.spark_files.source_positions import SourcePosition

_KEY_GROUPS_SHOWN = 16


@dataclass(slots=True)
class StateReport:
    """One state of a stream.

    Args:
        name: its name; for our state the column family.
        kind: the kind of state in Flink's terms, such as `VALUE`, `PRIORITY_QUEUE`, `UNION`.
        serializers: names of its serializers, by the part they serialize.
        can_be_read: True if its entries can be separated.
        removed: entries of a delta that remove a key; also part of `entries`.
        size: bytes of the entries.
        samples: the first entries, by the names of their parts.
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
        """Number of entries; None if they cannot be separated."""
        return self._entries if self.can_be_read else None

    @property
    def entries_by_key_group(self) -> Mapping[int, int]:
        """Number of entries per non-empty key group, ascending; empty for state without key groups."""
        return dict(sorted(self._by_key_group.items()))

    def add(self, sample: Mapping[str, Datum], max_samples: int, key_group: int | None = None) -> None:
        """Counts an entry."""
        self._entries += 1
        self.size += sum(len(datum.raw) for datum in sample.values())
        if key_group is not None:
            self._by_key_group[key_group] += 1
        if len(self.samples) < max_samples:
            self.samples.append(sample)

    def to_json(self) -> JsonObject:
        """All fields of the report."""
        return described(
            "stream_state",
            self,
            key_groups=list(self.entries_by_key_group),
            entries_by_key_group=list(self.entries_by_key_group.values()),
            samples=[_sample_json(sample) for sample in self.samples],
        )


@dataclass(slots=True)
class StreamReport:
    """One stream, or several of one handle.

    Args:
        operator: the operator.
        operator_name: its name, if known.
        subtask: index of the subtask.
        role: kind of state in the handle, such as `managed keyed state`.
        form: layout of its bytes.
        path: the file, or the name of inline state; the first of several.
        size: bytes of the stream.
        compressed: True if the data after the header is compressed.
        key_serializer: name of the serializer of all keys.
        states: its states.
        errors: errors found in it.
        positions: positions of a source of a Spark query, which are the content of its stream.
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
    positions: Sequence[SourcePosition] = ()

    @property
    def has_failed(self) -> bool:
        """True if it is missing, damaged or not allowed. An unknown serializer is a limitation, not a failure."""
        return any(not isinstance(error, UnknownSerializerError) for error in self.errors)

    def opened(self, stream: StateStream) -> None:
        """Records the path and the size of a stream."""
        self.path = self.path or stream.path
        self.size += stream.size

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Records an error instead of raising it; entries read before it are kept."""
        try:
            yield
        except SparkCkptError as error:
            self.errors.append(error)

    def to_json(self) -> JsonObject:
        """All fields of the report."""
        return described(
            "stream",
            self,
            operator_id=self.operator.operator_id.hex(),
            name=self.operator_name,
            states=[state.to_json() for state in self.states],
            errors=[describe_error(error) for error in self.errors],
            failed=self.has_failed,
        )


class UnreadStreamsError(SparkCkptError):
    """Streams of a checkpoint could not be read completely. Their reports have the errors.

    Attributes:
        path: the checkpoint's `_metadata`.
        unread: number of incompletely read streams.
        streams: number of all streams.
    """

    def __init__(self, path: str, unread: int, streams: int) -> None:
        super().__init__(f"{path}: {unread} of {streams} streams could not be read; the output shows the error of each")
        self.path = path
        self.unread = unread
        self.streams = streams


def _sample_json(sample: Mapping[str, Datum]) -> JsonObject:
    return {part: _value_json(datum.value if datum.known else datum.raw) for part, datum in sample.items()}


def _value_json(value: object) -> Json:
    if isinstance(value, RowData):
        return {"kind": value.kind, "fields": _value_json(value.fields)}
    if isinstance(value, NAMED):
        return {name: _value_json(item) for name, item in value._asdict().items()}
    if isinstance(value, Decimal):
        # A JSON number would lose digits and the scale.
        return str(value)
    if isinstance(value, tuple):
        return [_value_json(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such number.
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"no JSON for a {type(value).__name__}")


def streams_tree(reports: Sequence[StreamReport]) -> Tree:
    """A tree of operators and their streams, with a table of the states of each."""
    tree = Tree(Text(count(len(reports), "stream"), style="bold"), highlight=False)
    for (operator_id, name), streams in groupby(
        reports, lambda report: (report.operator.operator_id, report.operator_name)
    ):
        branch = tree.add(Text(plain(name) if name else operator_id.hex(), style="bold"))
        for report in streams:
            _add_stream(branch, report)
    return tree


def _add_stream(parent: Tree, report: StreamReport) -> None:
    branch = parent.add(Text(_title(report)))
    for error in report.errors:
        branch.add(Text(f"Error: {plain(str(error))}", style="bold red" if report.has_failed else "yellow"))
    if report.states:
        branch.add(Table.of(_COLUMNS, report.states))
    for position in report.positions:
        branch.add(Text(position_line(position)))
    for state in report.states:
        if state.entries_by_key_group:
            branch.add(Text(f"{plain(state.name)} has entries in {_key_groups(state.entries_by_key_group)}"))
        for sample in () if report.positions else state.samples:
            branch.add(Text(f"{plain(state.name)}: {_sample(sample)}"))


def _title(report: StreamReport) -> str:
    details = [report.form, human_size(report.size)]
    if report.compressed:
        details.append("compressed")
    if report.key_serializer is not None:
        details.append(f"keys {report.key_serializer}")
    if report.path is not None:
        details.append(report.path)
    return plain(f"subtask {report.subtask}, {report.role}: {', '.join(details)}")


def _counted(text: Callable[[StateReport], str]) -> Callable[[StateReport], str]:
    return lambda state: "" if state.entries is None else text(state)


_COLUMNS = (
    text_column("STATE", lambda state: plain(state.name)),
    text_column("KIND", lambda state: plain(state.kind)),
    text_column("SERIALIZERS", lambda state: ", ".join(f"{part} {name}" for part, name in state.serializers.items())),
    number_column(
        "KEY GROUPS", _counted(lambda it: f"{len(it.entries_by_key_group):,}" if it.entries_by_key_group else "")
    ),
    number_column("ENTRIES", lambda state: "not countable" if state.entries is None else f"{state.entries:,}"),
    number_column("REMOVED", _counted(lambda state: f"{state.removed:,}" if state.removed else "")),
    number_column("BYTES", _counted(lambda state: f"{state.size:,}")),
)


def _key_groups(entries: Mapping[int, int]) -> str:
    shown = [f"{group} ({number:,})" for group, number in list(entries.items())[:_KEY_GROUPS_SHOWN]]
    more = f" and {len(entries) - len(shown):,} more" if len(entries) > len(shown) else ""
    return f"key {'group' if len(entries) == 1 else 'groups'} {', '.join(shown)}{more}"


def _sample(sample: Mapping[str, Datum]) -> str:
    return plain(shortened(", ".join(f"{part} {_value(datum)}" for part, datum in sample.items())))


def _value(datum: Datum) -> str:
    return repr(datum.value) if datum.known else f"0x{datum.raw.hex()}"
