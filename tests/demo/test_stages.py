from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.demo.layout import Layout
from benchmarks.demo.queries import QUERIES
from benchmarks.demo.stages import STAGES, hold_back, queries_of, release


@pytest.mark.parametrize("files", [3, 4, 18])
def test_each_file_belongs_to_one_stage_and_flights_move_for_the_last(tmp_path: Path, files: int) -> None:
    layout = Layout(tmp_path)
    for feed in (layout.flights, layout.weather):
        feed.mkdir(parents=True)
        for number in range(files):
            (feed / f"{number:04}.parquet").touch()
    hold_back(layout)
    assert not layout.flights.exists()
    ends = []
    for stage in STAGES:
        layout = release(layout, stage, files)
        ends.append(len(list(layout.weather.iterdir())))
        flights = [path.name for folder in layout.all_flights for path in folder.iterdir()]
        assert sorted(flights) == sorted(path.name for path in layout.weather.iterdir())
    assert ends == [files // 3, 2 * files // 3, files]
    assert (layout.flights.name, layout.moved, len(layout.all_flights)) == ("flights-moved", 2 * files // 3, 2)


def test_the_aircraft_query_changes_after_the_first_stage() -> None:
    assert queries_of(None) == queries_of(1) == QUERIES
    assert queries_of(2) == queries_of(3)
    changed = [new.name for new, old in zip(queries_of(2), QUERIES, strict=True) if new != old]
    assert changed == ["aircraft"]
