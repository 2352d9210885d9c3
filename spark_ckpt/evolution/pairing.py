"""Stateful operators of the changed query, and those of the earlier query whose state they continue."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from spark_ckpt.checkpoint.meaning import OperatorMeaning, QueryMeaning
from spark_ckpt.evolution.choices import Choices
from spark_ckpt.spark_files.operators import AGGREGATION, REAL_TIME_AGGREGATION, TRANSFORM_WITH_STATE


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of operators.

    Args:
        earlier: number in the earlier query by number in the changed one; None if the operator begins empty.
        problems: what the user has to say.
    """

    earlier: Mapping[int, int | None]
    problems: tuple[str, ...]


def pair_operators(old: QueryMeaning, new: QueryMeaning, choices: Choices) -> Pairs:
    """Pairs operators by their kind and by what they compute. Their numbers change when one is added before them.

    Args:
        old: the earlier query.
        new: the changed query.
        choices: what the user has said.
    """
    problems: list[str] = []
    earlier: dict[int, int | None] = {}
    for number, choice in choices.operators.items():
        if new.operator(number) is None:
            problems.append(f"the changed query has no operator {number}; its operators are {_listed(new)}")
        elif choice is not None and old.operator(choice) is None:
            problems.append(f"the earlier query had no operator {choice}; its operators were {_listed(old)}")
        else:
            earlier[number] = choice
    for meaning_of in (_exactly, _by_keys, _kind):
        free = [each for each in old.operators if each.operator_id not in earlier.values()]
        left = [each for each in new.operators if each.operator_id not in earlier]
        for meaning in dict.fromkeys(meaning_of(each) for each in left):
            ours, theirs = _of(left, meaning_of, meaning), _of(free, meaning_of, meaning)
            if len(ours) == len(theirs):
                earlier.update({a.operator_id: b.operator_id for a, b in zip(ours, theirs, strict=True)})
            elif ours and theirs and meaning_of is _kind:
                problems += _questions(ours, theirs)
    return Pairs({each.operator_id: earlier.get(each.operator_id) for each in new.operators}, tuple(problems))


def kind_of(name: str) -> str:
    """Kind of an operator: those of one kind can continue each other's state."""
    if name in TRANSFORM_WITH_STATE:
        return TRANSFORM_WITH_STATE[0]
    return AGGREGATION if name == REAL_TIME_AGGREGATION else name


def _kind(operator: OperatorMeaning) -> Hashable:
    return kind_of(operator.name)


def _by_keys(operator: OperatorMeaning) -> Hashable:
    return _kind(operator), frozenset(key.text for key in operator.keys)


def _exactly(operator: OperatorMeaning) -> Hashable:
    functions = tuple(function.text for function in operator.functions)
    return _by_keys(operator), operator.detail, functions, operator.sides


def _of(
    operators: list[OperatorMeaning], meaning_of: Callable[[OperatorMeaning], Hashable], meaning: Hashable
) -> list[OperatorMeaning]:
    return [each for each in operators if meaning_of(each) == meaning]


def _questions(ours: list[OperatorMeaning], theirs: list[OperatorMeaning]) -> list[str]:
    candidates = ", ".join(str(each.operator_id) for each in theirs)
    return [
        f"operator {each.operator_id} ({each.name}) may continue operator {candidates} of the earlier query, or begin "
        f"empty. Say which: --operator {each.operator_id}=NUMBER, or --operator {each.operator_id}= to begin empty"
        for each in ours
    ]


def _listed(query: QueryMeaning) -> str:
    return ", ".join(f"{each.operator_id} ({each.name})" for each in query.operators) or "none"
