"""Changes of a query that Spark accepts although its state means something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_ckpt.checkpoint.meaning import QueryMeaning, SourceMeaning
from spark_ckpt.checkpoint.silent_changes import silent_changes
from tests.support.meanings import MINUTE, function, meaning, window

SUM = meaning(functions=(function("sum(0.v)"),))
JOIN = meaning(("0.k",), name="symmetricHashJoin", detail="INNER join", right_keys=("1.k",), sources=("a", "b"))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (SUM, meaning(functions=(function("sum(0.w)"),)), "operator 0 (stateStoreSave): sum(w) in place of sum(v)"),
        (SUM, meaning(functions=(function("max(0.v)", ("sum",)),)), "max(v) in place of sum(v)"),
        (
            SUM,
            meaning(("upper(0.k)",), SUM.operators[0].functions),
            "the key column upper(k) is upper(0.k), and was 0.k",
        ),
        (
            meaning((window(MINUTE, MINUTE),)),
            meaning((window(5 * MINUTE, 5 * MINUTE),)),
            "is window(0.ts, 5 min long), and was window(0.ts, 1 min long)",
        ),
        (
            JOIN,
            meaning(("1.k",), name="symmetricHashJoin", right_keys=("0.k",), sources=("a", "b")),
            "is 1.k, and was 0.k",
        ),
        (meaning(sources=("a", "b")), meaning(sources=("b", "a")), "source 0 is b, and was a"),
        (
            meaning(detail="ts + 1", name="sessionWindowStateStoreSaveExec"),
            meaning(detail="ts + 2", name="sessionWindowStateStoreSaveExec"),
            "its session windows have another gap or time column",
        ),
        (
            JOIN,
            meaning(("0.k",), name="symmetricHashJoin", detail="FULL join", right_keys=("1.k",), sources=("a", "b")),
            "a FULL join, and was a INNER join",
        ),
        (
            meaning(name="symmetricHashJoin", sides=("", "0.v < 50")),
            meaning(name="symmetricHashJoin", sides=("0.v < 50", "")),
            "the sides of the join have changed places",
        ),
        (meaning(("0.k", "0.j")), meaning(("0.j", "0.k")), "the key column j is 0.j, and was 0.k"),
    ],
)
def test_a_change_is_named(before: QueryMeaning, after: QueryMeaning, change: str) -> None:
    assert change in "; ".join(silent_changes(before, after))
    assert not silent_changes(before, before)
    assert not silent_changes(after, after)


@pytest.mark.parametrize(
    "after",
    [
        meaning(functions=(function("sum(0.v)"), function("sum(0.w)"))),  # Spark refuses another number of columns
        meaning(("0.k", "0.j"), SUM.operators[0].functions),
        meaning(name="dedupe"),
        meaning(functions=SUM.operators[0].functions, sources=("json path=/elsewhere",)),
        meaning(functions=SUM.operators[0].functions, sources=("json path=/in", "rate")),
        meaning(functions=SUM.operators[0].functions, sides=("0.v < 50", "")),
        QueryMeaning(SUM.sources, (), ("0.ts 1 hours",)),
    ],
)
def test_what_spark_refuses_or_any_start_may_change_is_no_silent_change(after: QueryMeaning) -> None:
    assert not silent_changes(SUM, after)


def named(**sources: str) -> QueryMeaning:
    """A query over sources with names, in this order."""
    found = tuple(SourceMeaning(text, number, name) for number, (name, text) in enumerate(sources.items()))
    return replace(meaning(("clicks.k",)), sources=found)


def test_sources_with_names_may_change_their_order() -> None:
    assert not silent_changes(named(clicks="a", views="b"), named(views="b", clicks="a"))


def test_sources_that_have_changed_names_are_named() -> None:
    changes = silent_changes(named(clicks="a", views="b"), named(clicks="b", views="a"))
    assert changes == ("source clicks is b, and was a", "source views is a, and was b")
