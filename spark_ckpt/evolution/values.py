"""Columns of values by their names: payloads of joins, fields of state variables, and all that Spark itself adds."""

from __future__ import annotations

from spark_ckpt.evolution.choices import Choices
from spark_ckpt.evolution.columns import Column, fitted
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.spark_files.operators import GROUPS_WITH_STATE, JOIN
from spark_ckpt.spark_files.schemas import DEFAULT_FAMILY, FamilySchema


def map_values(
    store: StoreSchema, old: FamilySchema, new: FamilySchema, choices: Choices, problems: list[str]
) -> tuple[tuple[Column, ...], tuple[str, ...]] | None:
    """Where the columns of a family's values come from, and what becomes of them.

    Args:
        store: the store in the changed query.
        old: the earlier family.
        new: the family.
        choices: what the user has said.
        problems: gets the reasons why not.

    Returns:
        The columns and notes; None if there is a problem.
    """
    title = f"{store.title}, {_shown(store, new)}"
    columns: list[Column] = []
    notes: list[str] = []
    before = len(problems)
    for index, name in enumerate(new.value.names):
        kind = new.value.types[index]
        if name in old.value.names:
            at = old.value.names.index(name)
            column = fitted(old.value, at, kind)
            if column is None:
                was = old.value.types[at].arrow
                problems.append(
                    f"{title}: {name} was {was} and is {kind.arrow} now, which does not have all of its values. Give "
                    "it another name, or a wider type"
                )
                column = Column(at)
            elif column.is_widened or column.fields is not None:
                notes.append(f"{_shown(store, new)}.{name}: {old.value.types[at].arrow} becomes {kind.arrow}")
            columns.append(column)
        elif _takes_columns(store):
            value = choices.values.get(name)
            if value is None and name in new.required:
                problems.append(
                    f"{title}: {name} is new and never null, so that earlier rows need a value: --value '{name}=...'"
                )
            columns.append(Column(None, value))
            notes.append(f"{_shown(store, new)}.{name}: added, {'null' if value is None else value} in earlier rows")
        else:
            had, have = ", ".join(old.value.names), ", ".join(new.value.names)
            problems.append(f"{title}: its columns were {had}, and are {have}")
            return None
    gone = [name for name in old.value.names if name not in new.value.names]
    notes += [f"{_shown(store, new)}.{name}: dropped" for name in gone]
    return None if len(problems) > before else (tuple(columns), tuple(notes))


def _takes_columns(store: StoreSchema) -> bool:
    return store.name == JOIN or store.has_variables or store.name in GROUPS_WITH_STATE


def _shown(store: StoreSchema, family: FamilySchema) -> str:
    return family.name if family.name != DEFAULT_FAMILY else store.store
