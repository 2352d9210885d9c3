"""The figures as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from benchmarks.scale.cluster import ClusterPoint
from benchmarks.scale.playing import ManyQueries, Point


def table(points: Sequence[Point]) -> Table:
    """A row per number of partitions."""
    made = _table(
        *("partitions", "stores", "batch, CPU ms", "a store, CPU µs", "completing, ms", "_metadata, KB"),
        *("start, CPU ms", "start, ms", "locate, CPU ms", "list, ms", "memory, MB"),
    )
    for one in points:
        made.add_row(
            f"{one.partitions:,}",
            f"{one.stores:,}",
            f"{one.batch_cpu_ms:,.0f}",
            f"{one.batch_cpu_ms * 1000 / one.stores:.1f}",
            f"{one.completing_ms:,.0f}",
            f"{one.metadata_bytes / 1000:,.0f}",
            f"{one.start_cpu_ms:,.0f}",
            f"{one.start_ms:,.0f}",
            f"{one.locate_cpu_ms:,.0f}",
            f"{one.list_ms:,.0f}",
            f"{one.memory_bytes / 1e6:,.0f}",
        )
    return made


def table_of_queries(found: Sequence[ManyQueries]) -> Table:
    """A row per number of queries in one driver."""
    made = _table("queries", "batch of a query, CPU ms", "memory, MB")
    for one in found:
        made.add_row(f"{one.queries}", f"{one.batch_cpu_ms:.1f}", f"{one.memory_bytes / 1e6:,.0f}")
    return made


def table_of_cluster(found: Sequence[ClusterPoint]) -> Table:
    """A row per number of partitions on real executors."""
    made = _table("partitions", "stores", "batch, CPU ms", "endpoint, CPU ms", "batch, ms", "memory, MB")
    for one in found:
        made.add_row(
            f"{one.partitions:,}",
            f"{one.stores:,}",
            f"{one.batch_cpu_ms:,.0f}",
            f"{one.endpoint_cpu_ms:,.0f}",
            f"{one.batch_ms:,.0f}",
            f"{one.memory_bytes / 1e6:,.0f}",
        )
    return made


def to_json(
    points: Sequence[Point],
    queries: Sequence[ManyQueries],
    cluster: Sequence[ClusterPoint],
    machine: Mapping[str, Any],
) -> dict[str, Any]:
    """All figures, machine-readable."""
    figures, of_queries, on_cluster = ([dict(vars(one)) for one in found] for found in (points, queries, cluster))
    return {"machine": dict(machine), "figures": figures, "queries": of_queries, "cluster": on_cluster}


def _table(*titles: str) -> Table:
    """A table of numbers."""
    made = Table()
    for title in titles:
        made.add_column(title, justify="right")
    return made
