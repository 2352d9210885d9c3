from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.scale.executors import STORES
from benchmarks.stores.coordinator import WARMUPS, measure
from benchmarks.stores.job import Order
from benchmarks.stores.workloads import WORKLOADS
from spark_ckpt.metadata import load


def test_leaves_checkpoints_of_all_subtasks(tmp_path: Path) -> None:
    workload = replace(WORKLOADS["coordinator"], partitions=3, batches=4)
    found = measure(Order(workload, "", "", str(tmp_path / "checkpoint")))
    assert len(found["samples"]["coordinator_ms"]) == 4
    assert all(time >= 0 for time in found["samples"]["coordinator_ms"])
    newest = max((tmp_path / "checkpoint" / "ckpt").glob("chk-*/_metadata"), key=lambda file: int(file.parent.name[4:]))
    assert int(newest.parent.name[4:]) >= WARMUPS + 4
    subtasks = [len(operator.subtask_states) for operator in load(newest).operator_states]
    assert subtasks.count(3) == len(STORES)
