"""A checked import: every type fits, and nothing was written yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_ckpt.flink.importing.errors import FlinkImportRefusedError
from spark_ckpt.flink.importing.kafka import KafkaOffsets
from spark_ckpt.flink.importing.location import ImportLocation
from spark_ckpt.flink.importing.mapping import Pair, StateMapping, title_of
from spark_ckpt.flink.importing.operator_state import left_behind
from spark_ckpt.flink.importing.result import FlinkImport, ImportedState
from spark_ckpt.flink.importing.rows import Order, RowEncoder
from spark_ckpt.flink.tables.catalog import FlinkCatalog
from spark_ckpt.spark_files.entries import OffsetEntry

Orders = Mapping[str, Sequence[str]]
"""Fields of Flink in the order of the query's, by state."""


@dataclass(frozen=True, slots=True, eq=False)
class ImportPlan:
    """A checked import.

    Args:
        source: Flink's location, as given by the user.
        flink: state of Flink.
        location: the query's location.
        mapping: which state goes where.
        encoders: encoder of each pair.
        kafka: positions of Flink's Kafka sources; None without any.
        offsets: entry of the offset log for the batch of the import.
        continues_there: True if that entry has Flink's positions.
    """

    source: str
    flink: FlinkCatalog
    location: ImportLocation
    mapping: StateMapping
    encoders: Sequence[RowEncoder]
    kafka: KafkaOffsets | None
    offsets: OffsetEntry
    continues_there: bool

    def result(
        self, checkpoint_id: int | None = None, rows: Mapping[str, int] | None = None, new_bytes: int = 0
    ) -> FlinkImport:
        """The result.

        Args:
            checkpoint_id: the new checkpoint; None after a dry run.
            rows: rows by the title of each target.
            new_bytes: bytes written.
        """
        mapping, flink = self.mapping, self.flink
        states = tuple(
            ImportedState(
                title_of(flink, encoder.pair.state),
                encoder.pair.state.kind,
                encoder.pair.target.title,
                encoder.pair.target.kind.value,
                None if rows is None else rows[encoder.pair.target.title],
                encoder.columns,
            )
            for encoder in self.encoders
        )
        return FlinkImport(
            self.source,
            flink.metadata.checkpoint_id,
            self.location.storage.location,
            self.location.batch_id,
            checkpoint_id,
            new_bytes,
            states,
            tuple(title_of(flink, state) for state in mapping.ignored),
            tuple(title_of(flink, state) for state, _ in mapping.open),
            tuple(target.title for target in mapping.empty),
            left_behind(flink.metadata),
            None if self.kafka is None else self.kafka.starting_offsets,
            self.continues_there,
        )


def encoders_of(flink: FlinkCatalog, mapping: StateMapping, keys: Orders, values: Orders) -> list[RowEncoder]:
    """The encoder of each pair.

    Args:
        flink: state of Flink.
        mapping: the pairs.
        keys: order of fields of keys, by state.
        values: order of fields of values, by state.

    Raises:
        FlinkTypeError: the types of a pair do not fit.
        FlinkImportRefusedError: there is no pair, or an order is for none.
    """
    if not mapping.pairs:
        if mapping.open:
            raise mapping.open[0][1]
        raise FlinkImportRefusedError(flink.location, "there is no keyed state to import")
    used: set[str] = set()
    encoders = [
        RowEncoder(pair, Order(*(_order(flink, pair, orders, used) for orders in (keys, values))))
        for pair in mapping.pairs
    ]
    unknown = sorted({*keys, *values} - used)
    if unknown:
        names = ", ".join(title_of(flink, pair.state) for pair in mapping.pairs)
        reason = f"an order of fields is given for {', '.join(unknown)}, which is not imported; imported: {names}"
        raise FlinkImportRefusedError(flink.location, reason)
    return encoders


def _order(flink: FlinkCatalog, pair: Pair, orders: Orders, used: set[str]) -> Sequence[str] | None:
    for name in (title_of(flink, pair.state), pair.state.name):
        if name in orders:
            used.add(name)
            return orders[name]
    return None
