"""Real Flink 1.20 reads our savepoints and goes on from them: one job for each type of key, and one of Flink SQL.

All types of keys, backends, numbers of key groups and releases: `test_flink_restores_all.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flink.export.counts import ALL, assert_equal, read_request, restore_request, write
from tests.flink.export.sql_counts import assert_counted, sql_request, write_sql
from tests.support.flink_restore import ask

BACKENDS = {"string": "rocksdb", "long": "hashmap", "row": "rocksdb"}


@pytest.mark.slow
def test_jobs_go_on_from_our_savepoints(tmp_path: Path) -> None:
    kinds = list(BACKENDS)
    write(tmp_path / "counts", kinds)
    write_sql(tmp_path / "sql")
    requests = [read_request(tmp_path / "counts", kind, "hashmap") for kind in kinds]
    requests += [restore_request(tmp_path / "counts", kind, backend) for kind, backend in BACKENDS.items()]
    answers = ask([*requests, sql_request(tmp_path / "sql", "rocksdb", parallelism=2)])
    for answer in answers[:-1]:
        assert_equal(answer)
    assert_counted(answers[-1])
    assert set(BACKENDS) < set(ALL)
