"""Columns of a grouping key, by what they are computed from.

A state belongs to one grouping key: it can be found under the same key in another order, under another name and in a
wider type, and states of several keys can be merged into one where Spark has a merge of their buffers. Nothing divides
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.expression_text import is_window, worded
from spark_ckpt.checkpoint.meaning import KeyMeaning, OperatorMeaning
from spark_ckpt.evolution.choices import Choices
from spark_ckpt.spark_files.operators import AGGREGATION, DEDUPLICATIONS, JOIN, REAL_TIME_AGGREGATION

_BEGIN = "begin empty with --operator {number}=, or rebuild the state from history"


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Earlier columns of a grouping key.

    Args:
        sources: index of the earlier column of each column.
        gone: indices of earlier columns that the key no longer has.
    """

    sources: tuple[int, ...]
    gone: tuple[int, ...] = ()


def map_keys(old: OperatorMeaning, new: OperatorMeaning, choices: Choices, problems: list[str]) -> KeyColumns | None:
    """The earlier column of each column of a grouping key.

    Args:
        old: the operator in the earlier query.
        new: the operator in the changed query.
        choices: what the user has said.
        problems: gets the reasons why not.

    Returns:
        The columns; None if there is a problem.
    """
    title = f"operator {new.operator_id} ({new.name})"
    left = _sources(title, new.operator_id, old.keys, new.keys, choices, problems)
    right = _sources(title, new.operator_id, old.right_keys, new.right_keys, choices, problems)
    if left is None or right is None:
        return None
    if new.name == JOIN and left != right:
        problems.append(f"{title}: the columns of its key have changed places on one side only. {_way_out(new)}")
        return None
    gone = tuple(index for index in range(len(old.keys)) if index not in left)
    if gone and (reason := _why_not_without(old, new, gone)) is not None:
        names = ", ".join(old.keys[index].shown for index in gone)
        problems.append(f"{title}: the key column {names} is gone{reason}. {_way_out(new)}")
        return None
    return KeyColumns(tuple(left), gone)


def _sources(
    title: str,
    number: int,
    old: Sequence[KeyMeaning],
    new: Sequence[KeyMeaning],
    choices: Choices,
    problems: list[str],
) -> list[int] | None:
    free = list(range(len(old)))
    found: dict[int, int] = {}
    for index, key in enumerate(new):
        told = next((choices.keys[name] for name in _names(key) if name in choices.keys), None)
        for at in free:
            is_it = told in _names(old[at]) if told is not None else old[at].text == key.text
            if is_it:
                found[index] = at
                free.remove(at)
                break
    missing = [index for index in range(len(new)) if index not in found]
    for index in missing:
        key = new[index]
        was = next((old[at] for at in free if old[at].shown == key.shown), None)
        if was is None and len(missing) == len(free) == 1:
            was = old[free[0]]
        problems.append(f"{title}: {_changed(number, key, was) if was is not None else _added(number, key)}")
    return None if missing else [found[index] for index in range(len(new))]


def _names(key: KeyMeaning) -> tuple[str, ...]:
    return key.shown, key.name, key.text


def _changed(number: int, key: KeyMeaning, was: KeyMeaning) -> str:
    if is_window(key.text) and is_window(was.text):
        return (
            f"{worded(key.text)} was {worded(was.text)}. State is kept for each window, and a window that has ended is "
            "gone, so that counts of other windows cannot be made of it. Run the earlier query until its windows have "
            f"ended, then {_BEGIN.format(number=number)}"
        )
    return (
        f"the key column {key.shown} is {worded(key.text)}, and was {worded(was.text)}: equal keys would not meet. If "
        f"both give the same values: --key '{key.shown}={was.shown}'; otherwise {_BEGIN.format(number=number)}"
    )


def _added(number: int, key: KeyMeaning) -> str:
    return (
        f"the key column {key.shown} ({worded(key.text)}) is new. The state of a key cannot be divided among its "
        f"values: only the input could tell. {_BEGIN.format(number=number).capitalize()}"
    )


def _why_not_without(old: OperatorMeaning, new: OperatorMeaning, gone: Sequence[int]) -> str | None:
    """Why states cannot be merged into those of a key without some columns; None if they can."""
    if new.name in DEDUPLICATIONS:
        return None  # seen with any value is seen
    if new.name not in (AGGREGATION, REAL_TIME_AGGREGATION):
        return ": the states of several keys would have to be merged"
    if any(is_window(old.keys[index].text) for index in gone):
        return ": windows that have ended are gone, so that nothing counts all of them"
    functions = [each.shown for each in old.functions if not each.merges]
    if functions:
        return f": Spark has no merge of buffers that can be used for {', '.join(functions)}"
    return None


def _way_out(operator: OperatorMeaning) -> str:
    return _BEGIN.format(number=operator.operator_id).capitalize()
