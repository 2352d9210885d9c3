"""Master state `spark-query`: what the state of a query means, so that a changed query is told from the same one."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from spark_ckpt.errors import CheckpointError
from spark_ckpt.format.integers import Natural

SPARK_QUERY = "spark-query"
"""Name of the master state that `QueryMeaning` describes."""

SPARK_QUERY_VERSION = 1
"""Version of its format."""


@dataclass(frozen=True, slots=True)
class SourceMeaning:
    """A source of a query.

    Args:
        text: its format, and where it reads.
        directory: number of its directory below `sources`; a source that the query uses twice has one.
        name: name that the query gives it; None without one.
    """

    text: str
    directory: Natural
    name: str | None = None


@dataclass(frozen=True, slots=True)
class KeyMeaning:
    """A column of a grouping key.

    Args:
        name: name of the column in the state.
        text: the expression that computes it.
        shown: the expression as the user wrote it.
    """

    name: str
    text: str
    shown: str


@dataclass(frozen=True, slots=True)
class FunctionMeaning:
    """An aggregate function.

    Args:
        text: the function.
        shown: the function as the user wrote it.
        buffers: names of its buffers, which are columns of the state.
        initial: its buffers before any input, as Spark's text of each value, or in hexadecimal for bytes; None where
            Spark cannot tell.
        merges: for each buffer `sum`, `min` or `max`, which merges the buffers of two keys; empty if none does.
    """

    text: str
    shown: str
    buffers: tuple[str, ...]
    initial: tuple[str | None, ...] | None = None
    merges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorMeaning:
    """A stateful operator.

    Args:
        operator_id: Spark's number of the operator in the query.
        name: Spark's short name.
        keys: columns of its grouping key; of a join, those of the left side.
        detail: kind of a join, or gap of session windows; None for other operators.
        right_keys: of a join, the columns of the right side.
        sides: of a join, the conditions of the rows of each side.
        functions: aggregate functions, in the order of their buffers.
    """

    operator_id: Natural
    name: str
    keys: tuple[KeyMeaning, ...]
    detail: str | None = None
    right_keys: tuple[KeyMeaning, ...] = ()
    sides: tuple[str, ...] = ()
    functions: tuple[FunctionMeaning, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryMeaning:
    """What the state of a query means: what its columns are computed from.

    Texts of expressions go down to the columns of the sources, as `0.v` for column `v` of source 0, or `clicks.v` of
    a source with that name. They leave out casts that lose nothing, and differ between minor versions of Spark.

    Args:
        sources: the sources, in the order of the offset log.
        operators: the stateful operators, by number.
        watermarks: column and delay of each watermark.
    """

    sources: tuple[SourceMeaning, ...]
    operators: tuple[OperatorMeaning, ...]
    watermarks: tuple[str, ...] = ()

    def operator(self, operator_id: int) -> OperatorMeaning | None:
        """One of the operators; None if there is no such number."""
        return next((each for each in self.operators if each.operator_id == operator_id), None)

    def encode(self) -> bytes:
        """Payload of the master state: JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, payload: bytes | str) -> QueryMeaning:
        """Decode a payload.

        Raises:
            CheckpointError: malformed payload.
        """
        try:
            return _DECODER.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
            raise CheckpointError(f"malformed master state {SPARK_QUERY}: {e}") from e


_DECODER = msgspec.json.Decoder(QueryMeaning)
