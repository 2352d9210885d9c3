"""Changes of a query that Spark accepts although they change what its state means.

Spark compares types and names of the state, and only some of them (`StateSchemaCompatibilityChecker`,
`OperatorStateMetadataReader`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_ckpt.checkpoint.expression_text import worded
from spark_ckpt.checkpoint.meaning import KeyMeaning, OperatorMeaning, QueryMeaning


def silent_changes(before: QueryMeaning, after: QueryMeaning) -> tuple[str, ...]:
    """Changes by which old and new rows of a state would have different meanings.

    What Spark itself refuses, such as another number of columns, is left to it. So is what may change at any start:
    filters, watermark delays, output modes, and where a source reads.

    Args:
        before: the query that wrote the state.
        after: the query that starts from it.

    Returns:
        A sentence without a full stop for each change.
    """
    return (*_sources(before, after), *_operators(before, after))


def _sources(before: QueryMeaning, after: QueryMeaning) -> Iterator[str]:
    """Sources that have changed places, or names: each would continue from the position of another."""
    had, have = _by_identity(before), _by_identity(after)
    if had.keys() == have.keys() and sorted(had.values()) == sorted(have.values()):
        for source, text in have.items():
            if had[source] != text:
                yield f"source {source} is {text}, and was {had[source]}"


def _by_identity(query: QueryMeaning) -> dict[str, str]:
    """Texts of the sources by what their offsets are kept by: the name, or the number in the query."""
    return {str(number) if each.name is None else each.name: each.text for number, each in enumerate(query.sources)}


def _operators(before: QueryMeaning, after: QueryMeaning) -> Iterator[str]:
    for operator in after.operators:
        was = before.operator(operator.operator_id)
        if was is None or was.name != operator.name:
            continue
        title = f"operator {operator.operator_id} ({operator.name})"
        for change in _of_operator(was, operator):
            yield f"{title}: {change}"


def _of_operator(was: OperatorMeaning, now: OperatorMeaning) -> Iterator[str]:
    if was.detail != now.detail and was.detail is not None and now.detail is not None:
        if was.detail.endswith("join"):
            yield f"a {now.detail}, and was a {was.detail}"
        else:
            yield "its session windows have another gap or time column"
    if was.sides != now.sides and was.sides == now.sides[::-1]:
        yield "the sides of the join have changed places"
    yield from _keys(was.keys, now.keys)
    yield from _keys(was.right_keys, now.right_keys)
    if len(was.functions) == len(now.functions):
        for old, new in zip(was.functions, now.functions, strict=True):
            if old.text != new.text:
                as_written = (new.shown, old.shown) if new.shown != old.shown else (new.text, old.text)
                yield "{} in place of {}".format(*as_written)


def _keys(was: Sequence[KeyMeaning], now: Sequence[KeyMeaning]) -> Iterator[str]:
    if len(was) != len(now):
        return
    for old, new in zip(was, now, strict=True):
        if old.text != new.text:
            yield f"the key column {new.shown} is {worded(new.text)}, and was {worded(old.text)}"
