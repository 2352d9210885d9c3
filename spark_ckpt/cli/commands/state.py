"""`spark-ckpt state`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click
from rich.text import Text
from rich.tree import Tree

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, id_option, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.metadata_json import Json, JsonObject
from spark_ckpt.cli.results.state import columns_json
from spark_ckpt.figures import count, human_size
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
        """`{"location", "checkpoint_id", "batch_id", "version", "stores"}`."""
        catalog = self.catalog
        return {
            "location": catalog.location,
            "checkpoint_id": catalog.found.metadata.checkpoint_id,
            "batch_id": catalog.batch.batch_id,
            "version": catalog.batch.version,
            "stores": [_store(store) for store in catalog.stores],
        }

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
    state = store.state
    families: list[Json] = [
        {
            "name": family.name,
            "kind": store.variables[family.name].value if family.name in store.variables else None,
            "key": columns_json(family.key.arrow),
            "value": columns_json(family.value.arrow),
        }
        for family in store.families
    ]
    return {
        "operator_id": state.operator_id,
        "name": state.name,
        "store": state.store,
        "parallelism": state.parallelism,
        "state_format_version": state.state_format_version,
        "rows": sum(state.rows),
        "state_bytes": int(state.segments.sizes.sum()),
        "families": families,
    }


@click.command("state")
@path_argument("location")
@id_option
@json_option
@pass_session
def show_state(session: Session, location: str, checkpoint_id: int | None) -> None:
    """Show operators, stores and row types of a checkpoint.

    LOCATION is the checkpointLocation of a query, as a path or URL. No rows are read.

    \b
    Examples:
      spark-ckpt state /path/to/checkpointLocation
      spark-ckpt state s3://bucket/checkpointLocation --id 17 --json
    """
    session.output.show(StateResult(open_state(location, checkpoint_id)))
