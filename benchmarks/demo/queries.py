"""The three queries. Each is a single function that serves both the stream and the batch answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from benchmarks.demo.data import CLOSING_ORIGIN

LATENESS = "8 hours"
"""Watermark delay, longer than the pause of flights at night: Spark reads the partitions of a topic side by side, and
one may be a few rows ahead of another."""


@dataclass(frozen=True)
class DemoQuery:
    """A query, and how its result reaches its table."""

    name: str
    title: str
    build: Callable[[DataFrame, DataFrame], DataFrame]
    merge_key: str | None = None
    """Column by which changed rows replace older ones; without it, the query appends."""

    @property
    def output_mode(self) -> str:
        """Spark's output mode."""
        return "append" if self.merge_key is None else "update"


def _by_aircraft(flights: DataFrame, **more: Column) -> DataFrame:
    totals = {
        **more,
        "flights": F.count("*"),
        "flown": F.count("air_time"),
        "miles": F.sum("distance"),
        "minutes": F.sum("air_time"),
        "worst_delay": F.max("dep_delay"),
        "last_seen": F.max("sched_time"),
    }
    columns = [total.alias(name) for name, total in totals.items()]
    return flights.where(F.col("origin") != CLOSING_ORIGIN).groupBy("tailnum").agg(*columns)


def aircraft_totals(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Totals of each aircraft for the year to date."""
    return _by_aircraft(flights)


def aircraft_totals_since_july(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Totals of each aircraft for the year to date, and its longest flight since July, as the first of its totals."""
    is_later = F.col("sched_time") >= F.lit("2013-07-01").cast("timestamp")
    return _by_aircraft(flights, longest_since_july=F.max(F.when(is_later, F.col("air_time"))))


def flights_with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Each flight with its airport's weather observation of the hour of departure, or without any.

    The hour is the event time on both sides, so the watermark bounds how long flights and observations wait for each
    other in the state; a flight still unmatched by then is emitted alone.
    """
    left = flights.withColumn("hour", F.date_trunc("hour", "sched_time")).withWatermark("hour", LATENESS)
    right = weather.withColumnRenamed("origin", "station").withWatermark("observed", LATENESS)
    match = (F.col("origin") == F.col("station")) & (F.col("hour") == F.col("observed"))
    return left.join(right, match, "leftOuter").drop("station", "observed")


def route_days(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Days on which each carrier served each route."""
    days = flights.where(F.col("origin") != CLOSING_ORIGIN).select(
        "carrier", "origin", "dest", F.date_trunc("day", "sched_time").alias("day")
    )
    return days.withWatermark("day", "1 day").dropDuplicates(["carrier", "origin", "dest", "day"])


QUERIES = (
    DemoQuery("aircraft", "totals per aircraft", aircraft_totals, merge_key="tailnum"),
    DemoQuery("weather", "flights joined with weather", flights_with_weather),
    DemoQuery("routes", "distinct carrier, route and day", route_days),
)
