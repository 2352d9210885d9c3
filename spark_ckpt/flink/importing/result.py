"""Result of an import."""

from __future__ import annotations

from dataclasses import dataclass

from spark_ckpt.flink.importing.operator_state import LeftBehind


@dataclass(frozen=True, slots=True)
class ImportedState:
    """A state that was imported, or would be.

    Args:
        flink: the state, with its operator.
        kind: its kind in Flink.
        spark: the state variable, with its operator.
        spark_kind: kind of that one.
        rows: number of rows; those of a list or map count one by one. None after a dry run.
        columns: name in Flink, name in the query, Arrow type in Flink and in the query, for each field.
    """

    flink: str
    kind: str
    spark: str
    spark_kind: str
    rows: int | None
    columns: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class FlinkImport:
    """Result of an import, or of its dry run.

    Args:
        source: location of Flink's checkpoint or savepoint.
        source_id: its checkpoint id.
        location: the query's location.
        batch_id: batch of the import in Spark's logs.
        checkpoint_id: the new checkpoint; None after a dry run.
        new_bytes: bytes written for it; 0 after a dry run.
        states: the imported states.
        ignored: states that the user leaves behind.
        unmapped: states without a state variable. They have no rows; after a dry run, rows are refused later.
        empty: state variables of the query without a state of Flink. They start empty.
        left_behind: operator state, which is not imported.
        starting_offsets: positions of Flink's Kafka sources, as JSON for Spark's `startingOffsets`; None without any.
        continues_there: True if the query continues at these positions.
    """

    source: str
    source_id: int
    location: str
    batch_id: int
    checkpoint_id: int | None
    new_bytes: int
    states: tuple[ImportedState, ...]
    ignored: tuple[str, ...]
    unmapped: tuple[str, ...]
    empty: tuple[str, ...]
    left_behind: tuple[LeftBehind, ...]
    starting_offsets: str | None
    continues_there: bool
