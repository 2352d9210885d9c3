"""State as text."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from spark_ckpt.cli.describe import Json
from spark_ckpt.cli.state_rows import Exported, ShownDiff, ShownRows
from spark_ckpt.cli.summary import count, human_size, plain
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.types import Struct

_NULL = "null"


def state_tree(catalog: StateCatalog) -> Tree:
    """The stores of a checkpoint, and below each the rows of its column families."""
    batch = catalog.batch
    title = f"checkpoint {catalog.found.metadata.checkpoint_id}, batch {batch.batch_id}, state version {batch.version}"
    tree = Tree(Text(title, style="bold"), highlight=False)
    for store in catalog.stores:
        state = store.state
        size = human_size(int(state.segments.sizes.sum()))
        line = Text(f"{plain(state.name)} {state.operator_id}/{plain(state.store)}", style="bold")
        line.append(
            f", {count(state.parallelism, 'partition')}, {count(sum(state.rows), 'row')}, {size}", style="not bold"
        )
        branch = tree.add(line)
        for text in _families(store):
            branch.add(Text(text))
    return tree


def _families(store: Store) -> Iterator[str]:
    for family in store.families:
        kind = store.variables.get(family.name)
        name = f"{plain(family.name)} {kind.value}" if kind else plain(family.name)
        yield f"{name}: ({_fields(family.key)}) -> ({_fields(family.value)})"


def _fields(kind: Struct) -> str:
    return ", ".join(plain(f"{field.name} {field.type}") for field in kind.arrow)


def rows_table(shown: ShownRows) -> Table:
    """A line for each row, a column for each field of its structs."""
    names = [
        (field.name, part.name)
        for field in shown.scan.schema
        for part in (field.type if pa.types.is_struct(field.type) else [field])
    ]
    table = _table(".".join(dict.fromkeys(name)) for name in names)
    for row in shown.rows:
        table.add_row(*(_cell(_part(row[name], part)) for name, part in names))
    return table


def rows_end(shown: ShownRows) -> str:
    """What stands below the rows."""
    there = count(len(shown.rows), "row")
    return f"the first {there}; --limit for more" if shown.has_more else there


def diff_table(shown: ShownDiff) -> Table:
    """A line for each change, with the fields that differ."""
    keys = [field.name for field in shown.diff.schema.field("key").type]
    table = _table(["CHANGE", *(f"key.{key}" for key in keys), "VALUE"])
    for row in shown.rows:
        before, after = row["before"], row["after"]
        table.add_row(
            Text(str(row["change"])), *(_cell(_part(row["key"], key)) for key in keys), Text(_change(before, after))
        )
    return table


def diff_end(shown: ShownDiff) -> str:
    """How many changes there are."""
    counts = shown.counts
    total = f"{counts['insert']:,} inserted, {counts['update']:,} updated, {counts['delete']:,} deleted"
    hidden = sum(counts.values()) - len(shown.rows)
    return f"{total}; {hidden:,} of them not shown, --limit for more" if hidden else total


def export_line(exported: Exported) -> str:
    """Where the rows are."""
    what = "Delta table" if exported.kind == "delta" else "Parquet file"
    return f"{count(exported.rows, 'row')} written to the {what} {plain(exported.target)}"


def _table(names: Iterator[str] | list[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(Text(plain(name)), no_wrap=True)
    return table


def _change(before: Json, after: Json) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        return ", ".join(
            f"{plain(name)} {_text(before.get(name))} -> {_text(after.get(name))}"
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        )
    if before is not None and after is not None:
        return f"{_text(before)} -> {_text(after)}"
    return _text(after if before is None else before)


def _part(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, dict) else value


def _cell(value: Json) -> Text:
    return Text(_text(value))


def _text(value: Json) -> str:
    if value is None:
        return _NULL
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
