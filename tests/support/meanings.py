"""Meanings of queries."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.checkpoint.meaning import FunctionMeaning, KeyMeaning, OperatorMeaning, QueryMeaning, SourceMeaning

_MICROS = "precisetimestampconversion(0.ts, TimestampType, LongType)"
MINUTE = 60_000_000
"""Microseconds."""


def window(length: int, slide: int, start: int = 0) -> str:
    """A time window as Spark 4.2 resolves it, without the case of negative times."""
    begin = f"(({_MICROS} - (({_MICROS} - {start}) % {slide})) - 0)"
    times = ", ".join(
        f"precisetimestampconversion({at}, LongType, TimestampType)" for at in (begin, f"({begin} + {length})")
    )
    return f"named_struct(start, {times})"


def function(
    text: str, buffers: tuple[str, ...] = (), initial: tuple[str | None, ...] | None = None, merges: str = ""
) -> FunctionMeaning:
    """An aggregate function over columns of source 0, such as `sum(0.v)`."""
    name = text.partition("(")[0]
    merged = (merges,) if merges else ()
    return FunctionMeaning(text, text.replace("0.", ""), buffers or (name,), initial or (None,), merged)


def key(text: str, name: str = "") -> KeyMeaning:
    """A column of a grouping key, such as `0.k`."""
    return KeyMeaning(name or text.rpartition(".")[2], text, text.replace("0.", "").replace("1.", ""))


def meaning(
    keys: Sequence[str] = ("0.k",),
    functions: tuple[FunctionMeaning, ...] = (),
    *,
    name: str = "stateStoreSave",
    sources: Sequence[str] = ("json path=/in",),
    detail: str | None = None,
    right_keys: Sequence[str] = (),
    sides: tuple[str, ...] = (),
) -> QueryMeaning:
    """Meaning of a query with one stateful operator."""
    described = tuple(SourceMeaning(text, number) for number, text in enumerate(sources))
    ours, theirs = tuple(map(key, keys)), tuple(map(key, right_keys))
    return QueryMeaning(described, (OperatorMeaning(0, name, ours, detail, theirs, sides, functions),))
