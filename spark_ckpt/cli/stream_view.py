"""Reports of streams as text: a tree of operators and streams, with a table of the states of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from spark_ckpt.cli.stream_report import StateReport, StreamReport
from spark_ckpt.cli.summary import count, human_size, plain, shortened
from spark_ckpt.metadata.streams import Datum

_COLUMNS = ("STATE", "KIND", "SERIALIZERS")
_NUMBERS = ("KEY GROUPS", "ENTRIES", "REMOVED", "BYTES")
_KEY_GROUPS_SHOWN = 16


def streams_tree(reports: Sequence[StreamReport]) -> Tree:
    """All streams, below their operators."""
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
        branch.add(_table(report.states))
    for state in report.states:
        if state.entries_by_key_group:
            branch.add(Text(f"{plain(state.name)} has entries in {_key_groups(state.entries_by_key_group)}"))
        for sample in state.samples:
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


def _table(states: Sequence[StateReport]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in _COLUMNS:
        table.add_column(name, no_wrap=True)
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    for state in states:
        table.add_row(*(Text(cell) for cell in _row(state)))
    return table


def _row(state: StateReport) -> Iterator[str]:
    yield plain(state.name)
    yield plain(state.kind)
    yield ", ".join(f"{part} {name}" for part, name in state.serializers.items())
    if state.entries is None:
        yield from ("", "cannot be counted", "", "")
    else:
        yield f"{len(state.entries_by_key_group):,}" if state.entries_by_key_group else ""
        yield f"{state.entries:,}"
        yield f"{state.removed:,}" if state.removed else ""
        yield f"{state.size:,}"


def _key_groups(entries: Mapping[int, int]) -> str:
    shown = [f"{group} ({number:,})" for group, number in list(entries.items())[:_KEY_GROUPS_SHOWN]]
    more = f" and {len(entries) - len(shown):,} more" if len(entries) > len(shown) else ""
    return f"key {'group' if len(entries) == 1 else 'groups'} {', '.join(shown)}{more}"


def _sample(sample: Mapping[str, Datum]) -> str:
    return plain(shortened(", ".join(f"{part} {_value(datum)}" for part, datum in sample.items())))


def _value(datum: Datum) -> str:
    return repr(datum.value) if datum.known else f"0x{datum.raw.hex()}"
