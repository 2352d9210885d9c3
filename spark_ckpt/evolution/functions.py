"""Buffers of aggregate functions, by what the functions compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.meaning import FunctionMeaning, OperatorMeaning
from spark_ckpt.evolution.choices import Choices
from spark_ckpt.evolution.columns import Column, fitted
from spark_ckpt.spark_files.types import Struct

_HOW = (
    "--function 'NEW=OLD' to continue, or --function 'NEW=' to begin without input, so that it covers later input only"
)


@dataclass(frozen=True, slots=True)
class Buffers:
    """Buffers of the functions of an aggregation.

    Args:
        columns: where each column comes from.
        merges: how the buffers of two keys become one, by column; empty if there is a function without.
        notes: what becomes of each function.
    """

    columns: tuple[Column, ...]
    merges: tuple[str, ...]
    notes: tuple[str, ...]


def map_buffers(
    old: OperatorMeaning,
    new: OperatorMeaning,
    old_value: Struct,
    new_value: Struct,
    choices: Choices,
    problems: list[str],
) -> Buffers | None:
    """Where the buffers of an aggregation's functions come from.

    Args:
        old: the operator in the earlier query.
        new: the operator in the changed query.
        old_value: the earlier buffers.
        new_value: the buffers.
        choices: what the user has said.
        problems: gets the reasons why not.

    Returns:
        The buffers; None if there is a problem.
    """
    title = f"operator {new.operator_id} ({new.name})"
    before = len(problems)
    if not (_fits(old, old_value) and _fits(new, new_value)):
        problems.append(f"{title}: the columns of its state are not those of its functions")
        return None
    pairs = _pairs(title, old.functions, new.functions, choices, problems)
    starts = _starts(old.functions)
    columns: list[Column] = []
    notes: list[str] = []
    for function, source in zip(new.functions, pairs, strict=True):
        if source is None:
            columns += _without_input(title, function, choices, problems)
            notes.append(
                f"{function.shown}: begins without input"
                if not _told_initial(function, choices)
                else f"{function.shown}: begins with the given buffers"
            )
            continue
        was = old.functions[source]
        made, note = _continued(title, function, was, old_value, new_value, starts[source], len(columns), problems)
        columns += made
        notes.append(note)
    taken = {source for source in pairs if source is not None}
    notes += [f"{each.shown}: dropped" for index, each in enumerate(old.functions) if index not in taken]
    if len(problems) > before:
        return None
    merges = [merge for function in new.functions for merge in function.merges]
    return Buffers(tuple(columns), tuple(merges) if len(merges) == len(columns) else (), tuple(notes))


def _fits(operator: OperatorMeaning, value: Struct) -> bool:
    return sum(len(function.buffers) for function in operator.functions) == len(value.types)


def _starts(functions: Sequence[FunctionMeaning]) -> list[int]:
    """Index of the first buffer of each function."""
    starts, at = [], 0
    for function in functions:
        starts.append(at)
        at += len(function.buffers)
    return starts


def _pairs(
    title: str,
    old: Sequence[FunctionMeaning],
    new: Sequence[FunctionMeaning],
    choices: Choices,
    problems: list[str],
) -> list[int | None]:
    """The earlier function that each function continues."""
    free = list(range(len(old)))

    def take(name: str, names: Callable[[FunctionMeaning], tuple[str, ...]]) -> int | None:
        """The first earlier function that is left and has this text."""
        found = next((index for index in free if name in names(old[index])), None)
        if found is not None:
            free.remove(found)
        return found

    told = {index: choice for index, function in enumerate(new) if (choice := _told(function, choices)) is not None}
    result: dict[int, int | None] = {}
    for index, choice in told.items():
        name = choice[0]
        result[index] = None if name is None else take(name, _names)
        if name is not None and result[index] is None:
            names = ", ".join(each.shown for each in old)
            problems.append(f"{title}: the earlier query had no function {name}; its functions were {names}")
    for index, function in enumerate(new):
        if index not in told:
            result[index] = take(function.text, _text)
    added = [new[index].shown for index in range(len(new)) if index not in told and result[index] is None]
    gone = [old[index].shown for index in free]
    if added and gone:
        problems.append(
            f"{title}: {', '.join(added)} came, and {', '.join(gone)} went. If one continues another, or if they have "
            f"nothing to do with each other, say {_HOW}"
        )
    return [result[index] for index in range(len(new))]


def _names(function: FunctionMeaning) -> tuple[str, ...]:
    return function.text, function.shown


def _text(function: FunctionMeaning) -> tuple[str, ...]:
    return (function.text,)


def _told(function: FunctionMeaning, choices: Choices) -> tuple[str | None] | None:
    """What the user has said about a function; None if nothing."""
    for name in (function.shown, function.text):
        if name in choices.functions:
            return (choices.functions[name],)
        if name in choices.initial:
            return (None,)
    return None


def _told_initial(function: FunctionMeaning, choices: Choices) -> Sequence[object] | None:
    return choices.initial.get(function.shown, choices.initial.get(function.text))


def _without_input(title: str, function: FunctionMeaning, choices: Choices, problems: list[str]) -> list[Column]:
    initial = _told_initial(function, choices)
    if initial is None:
        initial = function.initial
    if initial is None or len(initial) != len(function.buffers):
        problems.append(
            f"{title}: {function.shown} has the buffers {', '.join(function.buffers)}, and they need a value each: "
            f"--initial '{function.shown}=[...]'"
        )
        return [Column(None)] * len(function.buffers)
    return [Column(None, value) for value in initial]


def _continued(
    title: str,
    function: FunctionMeaning,
    was: FunctionMeaning,
    old: Struct,
    new: Struct,
    start: int,
    at: int,
    problems: list[str],
) -> tuple[list[Column], str]:
    """Columns of a function that continues another one, and what becomes of it."""
    is_same = function.shown == was.shown
    name = function.shown if is_same else f"{function.shown}: continues {was.shown}"
    wider = ""
    columns = []
    if len(function.buffers) != len(was.buffers):
        problems.append(f"{title}: {function.shown} has other buffers than {was.shown}. Say {_HOW}")
        return [Column(None)] * len(function.buffers), name
    for offset in range(len(function.buffers)):
        had, has = old.types[start + offset], new.types[at + offset]
        column = fitted(old, start + offset, has)
        if column is None:
            problems.append(
                f"{title}: {function.shown} was {had.arrow} and is {has.arrow} now, which does not have all of its "
                f"values. Keep the type, or begin without input: --function '{function.shown}='"
            )
            column = Column(None)
        elif column.is_widened:
            wider = f"{had.arrow} becomes {has.arrow}"
        columns.append(column)
    if wider:
        return columns, f"{name}: {wider}"
    return columns, f"{name}: kept" if is_same else name
