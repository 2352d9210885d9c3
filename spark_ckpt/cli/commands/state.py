"""`spark-ckpt state`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
from rich.text import Text
from rich.tree import Tree

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import (
    Session,
    checkpoint_options,
    flink_files_options,
    json_option,
    pass_session,
    path_argument,
)
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.figures import count, human_size
from spark_ckpt.flink.tables.catalog import FlinkCatalog, FlinkState
from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.metadata import OperatorState
from spark_ckpt.spark_files.types import Struct
from spark_ckpt.state.catalog import StateCatalog, Store, open_state


@dataclass(frozen=True, slots=True, eq=False)
class StateResult(Result):
    """The stores of a checkpoint and the types of their rows.

    Args:
        catalog: the stores.
    """

    catalog: StateCatalog

    def to_json(self) -> JsonObject:
        """The checkpoint and its stores."""
        catalog = self.catalog
        return described(
            "state",
            catalog,
            catalog.batch,
            checkpoint_id=catalog.found.metadata.checkpoint_id,
            stores=[_store(store) for store in catalog.stores],
        )

    def render(self) -> Iterator[Tree]:
        """A tree of stores, with the types of each column family below."""
        catalog, batch = self.catalog, self.catalog.batch
        checkpoint_id = catalog.found.metadata.checkpoint_id
        title = f"checkpoint {checkpoint_id}, batch {batch.batch_id}, state version {batch.version}"
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
        yield tree


def _families(store: Store) -> Iterator[str]:
    for family in store.families:
        kind = store.variables.get(family.name)
        name = f"{plain(family.name)} {kind.value}" if kind else plain(family.name)
        yield f"{name}: ({_fields(family.key)}) -> ({_fields(family.value)})"


def _fields(kind: Struct) -> str:
    return ", ".join(plain(f"{field.name} {field.type}") for field in kind.arrow)


def _store(store: Store) -> JsonObject:
    families = [
        described(
            "column_family",
            family,
            kind=store.variables.get(family.name),
            key=family.key.arrow,
            value=family.value.arrow,
        )
        for family in store.families
    ]
    size = int(store.state.segments.sizes.sum())
    return described("state_store", store.state, rows=sum(store.state.rows), state_bytes=size, families=families)


@dataclass(frozen=True, slots=True, eq=False)
class FlinkStateResult(Result):
    """The keyed states of a Flink checkpoint and the types of their rows.

    Args:
        catalog: the checkpoint.
        states: its states.
    """

    catalog: FlinkCatalog
    states: Sequence[FlinkState]

    def to_json(self) -> JsonObject:
        """`{"location", "checkpoint_id", "operators"}`."""
        return {
            "location": self.catalog.location,
            "checkpoint_id": self.catalog.metadata.checkpoint_id,
            "operators": [
                described(
                    "flink_operator",
                    operator,
                    operator_id=operator.operator_id.hex(),
                    state_bytes=operator.state_size,
                    states=[_flink_state(state) for state in self._of(operator)],
                    unread=self.catalog.unread(operator),
                )
                for operator in self.catalog.operators
            ],
        }

    def render(self) -> Iterator[Tree]:
        """A tree of operators, with the types of each state below."""
        title = f"checkpoint {self.catalog.metadata.checkpoint_id} of Flink"
        tree = Tree(Text(title, style="bold"), highlight=False)
        for operator in self.catalog.operators:
            names = [plain(name) for name in (operator.name, operator.uid) if name]
            line = Text(" ".join([*names, operator.operator_id.hex()]), style="bold")
            tasks, groups = count(operator.parallelism, "subtask"), count(operator.max_parallelism, "key group")
            line.append(f", {tasks}, {groups}, {human_size(operator.state_size)}", style="not bold")
            branch = tree.add(line)
            for state in self._of(operator):
                fields = [f"{column.name} {column.arrow.type}" for column in state.columns.columns]
                split = state.columns.identity
                types = f"({', '.join(fields[:split])}) -> ({', '.join(fields[split:])})"
                branch.add(Text(plain(f"{state.name} {state.kind}: {types}")))
            for unread in self.catalog.unread(operator):
                branch.add(Text(plain(f"not read: {unread}"), style="yellow"))
        yield tree

    def _of(self, operator: OperatorState) -> list[FlinkState]:
        return [state for state in self.states if state.operator_id == operator.operator_id]


def _flink_state(state: FlinkState) -> JsonObject:
    columns = [described("flink_column", column, type=column.arrow.type) for column in state.columns.columns]
    identity = state.columns.identity
    return described("flink_keyed_state", state, key=columns[:identity], value=columns[identity:])


@click.command("state")
@path_argument("location")
@checkpoint_options()
@flink_files_options
@json_option
@pass_session
def show_state(
    session: Session, location: str, checkpoint_id: int | None, moved: list[tuple[str, str]], allow_outside: bool
) -> None:
    """Show operators, stores and row types of a checkpoint.

    LOCATION is the checkpointLocation of a query, or a checkpoint, savepoint or job directory of Flink; a path or URL.
    No rows are read.

    \b
    Examples:
      spark-ckpt state /path/to/checkpointLocation
      spark-ckpt state s3://bucket/checkpointLocation --id 17 --json
    """
    flink = find_flink_state(location, checkpoint_id, moved=moved, allow_outside=allow_outside)
    if flink is None:
        session.output.show(StateResult(open_state(location, checkpoint_id)))
    else:
        session.output.show(FlinkStateResult(flink, flink.states()))
