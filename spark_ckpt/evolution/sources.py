"""Sources of the changed query, and where they continue. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.evolution.choices import Choices
from spark_ckpt.evolution.result import EvolvedSource
from spark_ckpt.operations.offset_rules import why_not


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """Sources of the changed query.

    Args:
        sources: the sources, in the order of the offset log.
        directories: for each directory below `sources`, that of the earlier query with its content; None for a new one.
        is_identity: True if all sources stay where they are.
        problems: what the user has to say.
    """

    sources: tuple[EvolvedSource, ...]
    directories: tuple[int | None, ...]
    is_identity: bool
    problems: tuple[str, ...]


def map_sources(offsets: Sequence[str | None], old: QueryMeaning, new: QueryMeaning, choices: Choices) -> SourceMapping:
    """Maps the sources of a query to those of a changed one.

    Args:
        offsets: the last offset of each earlier source.
        old: the earlier query.
        new: the changed query.
        choices: what the user has said.
    """
    problems: list[str] = []
    told = {number: choice for number, choice in choices.sources.items() if number < len(new.sources)}
    problems += [
        f"the changed query has no source {number}; it has {len(new.sources)}"
        for number in choices.sources
        if number not in told
    ]
    taken = {choice for choice in told.values() if isinstance(choice, int)}
    free = [index for index in range(len(offsets)) if index not in taken]
    sources: list[EvolvedSource] = []
    for number, source in enumerate(new.sources):
        if number in told:
            choice = told[number]
        else:
            same = [index for index in free if index < len(old.sources) and old.sources[index].text == source.text]
            if not same:
                problems.append(_question(number, source.text, free, old))
                continue
            choice = same[0]
        if isinstance(choice, int):
            if not 0 <= choice < len(offsets):
                problems.append(f"the earlier query had no source {choice}; it had {len(offsets)}")
                continue
            if choice in free:
                free.remove(choice)
            sources.append(EvolvedSource(number, source.text, choice, offsets[choice]))
        else:
            if choice is not None and (reason := why_not(str(number), None, choice)) is not None:
                problems.append(reason)
            sources.append(EvolvedSource(number, source.text, None, choice))
    is_identity = len(sources) == len(offsets) and all(
        source.from_source == number and source.position == offsets[number] for number, source in enumerate(sources)
    )
    return SourceMapping(tuple(sources), _directories(sources, old, new), is_identity, tuple(problems))


def _directories(sources: Sequence[EvolvedSource], old: QueryMeaning, new: QueryMeaning) -> tuple[int | None, ...]:
    found: dict[int, int | None] = {}
    for source in sources:
        number = source.from_source
        directory = old.sources[number].directory if number is not None and number < len(old.sources) else None
        found.setdefault(new.sources[source.number].directory, directory)
    return tuple(found[directory] for directory in sorted(found))


def _question(number: int, text: str, free: Sequence[int], old: QueryMeaning) -> str:
    earlier = ", ".join(f"{index} ({old.sources[index].text})" for index in free if index < len(old.sources))
    continues = (
        f"--source {number}=K to continue where source K of the earlier query stands: {earlier}; " if earlier else ""
    )
    return (
        f"source {number} ({text}) is none of the earlier query. Say where it begins: {continues}--source "
        f"{number}=start for its own start; or --source '{number}=OFFSET', an offset as Spark writes it"
    )
