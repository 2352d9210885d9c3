from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.demo import data


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[int, ...]]:
    folder = tmp_path_factory.mktemp("feed")
    return folder, data.prepare(folder, 30)


def files(folder: Path, feed: str) -> list[pa.Table]:
    paths = sorted((folder / feed).iterdir(), key=lambda path: path.stat().st_mtime)
    return [pq.read_table(path) for path in paths]


def test_holds_every_flight_and_observation_and_the_marks(feed: tuple[Path, tuple[int, ...]]) -> None:
    folder, rows = feed
    assert [len(file) for file in files(folder, "flights")] == list(rows)
    assert sum(rows) == 336_776 + 1
    assert sum(len(file) for file in files(folder, "weather")) == 26_115 + 1


@pytest.mark.parametrize(("name", "time_column"), [("flights", "sched_time"), ("weather", "observed")])
def test_files_follow_the_order_of_events(feed: tuple[Path, tuple[int, ...]], name: str, time_column: str) -> None:
    """File order, as read by Spark's file source, is event-time order: no row is late, whatever the watermark delay."""
    last = None
    for file in files(feed[0], name):
        times = file[time_column]
        assert last is None or pc.min(times).as_py() > last
        last = pc.max(times).as_py()
    assert last == data.CLOSING_TIME


def test_weather_comes_behind_the_flights(feed: tuple[Path, tuple[int, ...]]) -> None:
    """Otherwise no flight would wait in the state of the join."""
    flights, weather = files(feed[0], "flights"), files(feed[0], "weather")
    assert len(flights) == len(weather)
    for seen, known in list(zip(flights, weather, strict=True))[:-1]:
        lag = pc.max(seen["sched_time"]).as_py() - pc.max(known["observed"]).as_py()
        assert lag >= data.WEATHER_DELAY - timedelta(hours=1)


def test_days_are_split_over_files(feed: tuple[Path, tuple[int, ...]]) -> None:
    """Otherwise de-duplication by day would need no state across batches."""
    flights = files(feed[0], "flights")
    days = [set(pc.floor_temporal(file["sched_time"], unit="day").to_pylist()) for file in flights]
    assert all(days[number] & days[number + 1] for number in range(len(days) - 2))


def test_the_last_file_closes_both_feeds(feed: tuple[Path, tuple[int, ...]]) -> None:
    flights, weather = files(feed[0], "flights")[-1], files(feed[0], "weather")[-1]
    assert flights["origin"][-1].as_py() == data.CLOSING_ORIGIN
    assert weather["origin"][-1].as_py() == data.CLOSING_STATION
