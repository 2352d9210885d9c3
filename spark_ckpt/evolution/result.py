"""Result of an evolution, or of its dry run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvolvedStore:
    """A store of the changed query.

    Args:
        operator_id: Spark's number of the operator.
        name: Spark's short name of the operator.
        store: name of the store.
        from_operator: number of the operator whose state it continues; None if it begins empty.
        rows: earlier rows that it continues.
        is_rewritten: True if its rows are written anew; False if it keeps its files, or begins empty.
        notes: what becomes of its columns and functions.
    """

    operator_id: int
    name: str
    store: str
    from_operator: int | None
    rows: int
    is_rewritten: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvolvedSource:
    """A source of the changed query.

    Args:
        number: its number.
        text: its format, and where it reads.
        from_source: number of the source whose position it continues from; None for another position.
        position: its offset, as Spark writes it; None for its own start.
    """

    number: int
    text: str
    from_source: int | None
    position: str | None


@dataclass(frozen=True, slots=True)
class Evolution:
    """What an evolution did, or would do.

    Args:
        location: the checkpoint location.
        new_location: location of the changed query, if that is another one.
        stores: stores of the changed query.
        dropped: state that is left behind.
        sources: sources of the changed query.
        watermarks: watermarks that change, for people.
        batch_id: last batch of the evolution in Spark's logs; None if nothing changes.
        from_checkpoint: the checkpoint that it started from.
        checkpoint_id: the new checkpoint; None after a dry run, or if nothing changes.
        new_bytes: bytes written for the new checkpoint.
    """

    location: str
    new_location: str | None
    stores: tuple[EvolvedStore, ...]
    dropped: tuple[str, ...]
    sources: tuple[EvolvedSource, ...]
    watermarks: tuple[str, ...]
    batch_id: int | None
    from_checkpoint: int
    checkpoint_id: int | None
    new_bytes: int
