"""Changes to a state store with a string key and a struct value, and checkpoints of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from spark_ckpt.format.segments import Section
from tests.support.state_location import StateLocation, row, schema

KEY = schema(user="string")
VALUE = schema(n="long", label="string")
Changes = Mapping[str, "int | None"]


def key(user: str) -> bytes:
    return row(KEY, user)


def value(n: int) -> bytes:
    return row(VALUE, n, "x" * n)


def section(changes: Changes, family: str = "") -> Section:
    return Section(tuple((key(user), None if n is None else value(n)) for user, n in changes.items()), family)


def commit_all(location: StateLocation, history: Iterable[tuple[Changes, bool]]) -> dict[int, dict[str, int]]:
    """Commits a checkpoint per batch of changes, optionally with a base; returns the expected rows by checkpoint id."""
    state: dict[str, int] = {}
    states = {}
    for changes, has_base in history:
        base = [section(dict(state))] if has_base and state else []
        for user, n in changes.items():
            state.pop(user, None) if n is None else state.update({user: n})
        states[location.commit(section(changes), base=base, rows=len(state))] = dict(state)
    return states


users = st.sampled_from([f"user-{number}" for number in range(8)])
batches = st.dictionaries(users, st.none() | st.integers(0, 20), max_size=6)
LISTED = {"count": (KEY, VALUE), "listed": (KEY, VALUE)}
KINDS = {"count": "ValueState", "listed": "ListState"}


def lists(changes: dict[str, list[int]], *, appends: bool = False) -> Section:
    entries = tuple((key(user), tuple(value(n) for n in numbers)) for user, numbers in changes.items())
    return Section(entries, "listed", True, appends)
