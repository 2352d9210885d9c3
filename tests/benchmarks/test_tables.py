from __future__ import annotations

import io
import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.stores import tables
from benchmarks.stores.results import Record
from benchmarks.stores.summary import Summary
from tests.benchmarks.records import record

RECORDS = [
    record("count-1", "ckpt", batch_ms=[100.0, 200.0, 300.0], state_ms=[30.0]),
    record("count-1", "hdfs", batch_ms=[400.0], state_ms=[60.0]),
    record("memory", "ckpt", memory_bytes=[77.7]),
    record("coordinator", "ckpt", coordinator_ms=[12.0]),
]


def shown(table: Table) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def warnings(records: Sequence[Record]) -> list[str]:
    return list(tables.warnings(Summary(records), records))


def test_shows_medians_and_quartiles() -> None:
    text = shown(tables.figures_table(Summary(RECORDS), "count-1"))
    assert "200 (150 to 250)" in text
    assert [word in text for word in ("spark-ckpt", "HDFSBacked", "RocksDB", "batch, ms")] == [True, True, False, True]
    assert "memory, bytes" in shown(tables.figures_table(Summary(RECORDS), "memory"))


def test_shows_targets_beside_what_was_measured() -> None:
    found = tables.verdicts(Summary(RECORDS))
    assert [(one.target.workload, one.target.measure, one.met) for one in found] == [
        ("count-1", "state_ms", False),
        ("count-1", "batch_ms", True),
        ("coordinator", "coordinator_ms", True),
    ]
    text = shown(tables.verdicts_table(found))
    limits = (f"{one.target.limit:g}" for one in found if one.target.workload == "count-1")
    assert all(word in text for word in ("missed", "met", "40 ms", "12 ms", "HDFSBacked", *limits))


def test_says_everything_as_json() -> None:
    found = json.loads(json.dumps(tables.to_json(Summary(RECORDS), RECORDS)))
    assert found["machine"] == {"cores": 2, "commit": "abc"}
    assert {
        "workload": "count-1",
        "provider": "ckpt",
        "measure": "batch_ms",
        "median": 200,
        "low": 150,
        "high": 250,
        "count": 3,
    } in found["figures"]
    assert len(found["figures"]) == 6
    assert [(one["workload"], one["measure"], one["met"]) for one in found["targets"]] == [
        ("count-1", "state_ms", False),
        ("count-1", "batch_ms", True),
        ("coordinator", "coordinator_ms", True),
    ]
    assert found["warnings"] == []


def test_warns_of_a_busy_machine() -> None:
    assert warnings([record("count-1", "ckpt", load=2.0)]) == []
    assert warnings([record("count-1", "ckpt", load=2.1), record("count-1", "hdfs")]) == [
        "1 runs started on a busy machine, with a load of up to 2.1"
    ]


def test_warns_of_runs_that_were_made_otherwise() -> None:
    records = [record("count-1", "ckpt", commit="abc"), record("count-1", "hdfs", commit="def")]
    assert warnings(records) == ["runs differ in commit"]


def test_warns_of_different_states() -> None:
    records = [record("count-1", "ckpt", rows=1), record("count-1", "hdfs", rows=2)]
    assert warnings(records) == [
        "count-1: the providers end with different numbers of state rows: {'ckpt': [1], 'hdfs': [2]}"
    ]
