"""State of a Flink job to a query, from there to a savepoint of Flink, and to another query."""

from __future__ import annotations

from pathlib import Path

from spark_ckpt import export_savepoint, import_flink_savepoint, read_state
from tests.flink.importing.places import target, variables_of_the_vectors
from tests.flink.streams.corpus import job, lay_out


def test_state_comes_back_as_it_went(tmp_path: Path) -> None:
    source = lay_out(job("f120-savepoint-canonical-heap-p2"), tmp_path / "flink").parent
    first, second = (target(tmp_path / name, *variables_of_the_vectors("long")).path for name in ("first", "second"))
    imported = import_flink_savepoint(source, first)
    export_savepoint(first, str(tmp_path / "savepoint"), uid="job", key="long")
    again = import_flink_savepoint(tmp_path / "savepoint", second)
    rows = {state.spark: state.rows for state in imported.states}
    assert {state.spark: state.rows for state in again.states} == rows
    assert len(rows) == 5
    for family in ("sum", "list", "map", "$eventTimers_keyToTimestamp", "$procTimers_keyToTimestamp"):
        # Partitions and key groups are Spark's on both sides; within a key group, the order of keys is free.
        tables = [read_state(place, variable=family).to_arrow().to_pylist() for place in (first, second)]
        assert sorted(map(repr, tables[0])) == sorted(map(repr, tables[1]))
        assert tables[0]
