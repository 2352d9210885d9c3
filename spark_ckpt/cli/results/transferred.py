"""Stores of an import or export, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.figures import count, human_size
from spark_ckpt.migrate.transferred import TransferredStore


def store_json(store: TransferredStore) -> JsonObject:
    """A store and its column families."""
    return described("transferred_store", store, families=[*store.families.items()])


def store_lines(stores: Iterable[TransferredStore]) -> Iterator[str]:
    """A line for each store, and one for each of several column families."""
    for store in stores:
        parts = [count(store.partitions, "partition")]
        parts += [] if store.rows is None else [count(store.rows, "key")]
        parts += [] if store.size is None else [human_size(store.size)]
        yield f"  {plain(store.name)} {store.operator_id}/{plain(store.store)}: {', '.join(parts)}"
        if len(store.families) > 1:
            for name, rows in store.families.items():
                yield f"    {plain(name)}" + ("" if rows is None else f": {count(rows, 'row')}")
