from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale import __main__ as command
from benchmarks.scale.executors import STORES
from benchmarks.scale.playing import measure, measure_queries
from benchmarks.scale.tables import table, table_of_queries, to_json


def test_a_point_has_figures_of_all_kinds(tmp_path: Path) -> None:
    point = measure(partitions=3, executors=2, batches=2, folder=tmp_path)
    assert (point.partitions, point.stores) == (3, 3 * len(STORES))
    assert all(figure > 0 for figure in vars(point).values())
    assert list(tmp_path.iterdir()) == []
    assert table([point]).row_count == 1
    queries = measure_queries(2, batches=1, folder=tmp_path)
    assert queries.memory_bytes > point.memory_bytes / 2
    assert table_of_queries([queries]).row_count == 1
    found = to_json([point], [queries], [], {"cores": 2})
    assert (found["figures"], found["queries"]) == ([vars(point)], [vars(queries)])


def test_the_command_writes_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "scale.json"
    counts = ["--partitions", "2", "--queries", "1", "--on-cluster", "--batches", "1"]
    arguments = [*counts, "--work", str(tmp_path), "--output", str(output), "--json"]
    monkeypatch.setattr("sys.argv", ["scale", *arguments])
    assert command.main() == 0
    assert capsys.readouterr().out.strip() == output.read_text(encoding="utf-8").strip()
