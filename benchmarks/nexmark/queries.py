"""The queries of Nexmark, as streaming DataFrames and as batch answers over the same events.

Numbers and texts are those of Nexmark for Flink SQL. Where Structured Streaming needs another form, `Query.form` says
which; what it cannot say at all is in `IMPOSSIBLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.nexmark.generator import AUCTION, BID, EPOCH_US, PERSON

WATERMARK = "4 seconds"
"""Delay of the watermark, as in Nexmark for Flink."""

_WINDOW = "10 seconds"
CLOSED = f"dateTime < timestamp_micros({EPOCH_US + 86_400_000_000})"
"""All events but those that close the windows."""

Events = DataFrame
"""Rows of `benchmarks.nexmark.generator.SCHEMA`."""


@dataclass(frozen=True)
class Query:
    """A query of Nexmark.

    Args:
        name: its number in Nexmark, with a `q` before it.
        title: what it computes.
        stream: the streaming query over the events.
        batch: the same answer over all events at once.
        mode: output mode.
        key: columns that identify a row of the answer where later rows replace earlier ones; empty if rows are final.
        form: what Structured Streaming needs instead of Nexmark's SQL; empty if nothing.
        stateful: false for the control, which keeps no state.
        needs_families: whether the state store has to support column families, as `transformWithState` needs them.
        by_clock: whether the answer depends on the time of the run.
    """

    name: str
    title: str
    stream: Callable[[Events], DataFrame]
    batch: Callable[[Events], DataFrame]
    mode: str = "append"
    key: tuple[str, ...] = ()
    form: str = ""
    stateful: bool = True
    needs_families: bool = False
    by_clock: bool = False


def read(spark: SparkSession, folder: str, like: str) -> Events:
    """The stream of events, a file per batch; `like` is a folder that has such files already."""
    schema = spark.read.parquet(like).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def persons(events: Events) -> DataFrame:
    """Persons, with the watermark."""
    return _of(events, PERSON, "person")


def auctions(events: Events) -> DataFrame:
    """Auctions, with the watermark."""
    return _of(events, AUCTION, "auction")


def bids(events: Events) -> DataFrame:
    """Bids, with the watermark."""
    return _of(events, BID, "bid")


def lots(events: Events) -> DataFrame:
    """Auctions and bids in one stream, with the auction's id."""
    of_event = F.when(F.col("event_type") == AUCTION, F.col("auction.id")).otherwise(F.col("bid.auction"))
    chosen = events.where(F.col("event_type") != PERSON).withWatermark("dateTime", WATERMARK)
    return chosen.select(of_event.alias("id"), "auction", "bid", "dateTime")


def _of(events: Events, kind: int, struct: str) -> DataFrame:
    return events.where(F.col("event_type") == kind).select(f"{struct}.*").withWatermark("dateTime", WATERMARK)


def _in_jvm(name: str, frame: DataFrame) -> DataFrame:
    """The query `name` of `org.apache.spark.sql.benchmark.nexmark.Queries`."""
    spark = frame.sparkSession
    jvm: Any = spark.sparkContext._jvm
    found = getattr(jvm.org.apache.spark.sql.benchmark.nexmark.Queries, name)(frame._jdf)
    return DataFrame(found, spark)


def _q3(events: Events) -> DataFrame:
    sold = auctions(events).where("category = 10")
    near = persons(events).where("state in ('OR', 'ID', 'CA')")
    return sold.join(near, sold.seller == near.id).select("name", "city", "state", sold.id)


def _winners_in_batch(events: Events) -> DataFrame:
    """Winning bids of all auctions, with SQL as in Nexmark's q9."""
    lot, bid = auctions(events).where(CLOSED).alias("a"), bids(events).alias("b")
    valid = F.expr("a.id = b.auction and b.dateTime between a.dateTime and a.expires")
    by_price = "row_number() over (partition by a.id order by b.price desc, b.dateTime, b.bidder, b.extra)"
    ranked = lot.join(bid, valid).withColumn("place", F.expr(by_price)).where("place = 1")
    return ranked.select(
        "a.*",
        *("b.auction", "b.bidder", "b.price"),
        F.col("b.dateTime").alias("bid_dateTime"),
        F.col("b.extra").alias("bid_extra"),
    )


def _q4_in_batch(events: Events) -> DataFrame:
    average = (F.sum("price") / F.count("price")).cast("long").alias("average")
    return _winners_in_batch(events).groupBy(F.col("category").alias("key")).agg(average)


def _q5(events: Events) -> DataFrame:
    counted = bids(events).groupBy(F.window("dateTime", _WINDOW, "2 seconds").alias("window"), "auction").count()
    return counted.groupBy("window").agg(F.max(F.struct("count", "auction")).alias("hottest"))


def _q6_in_batch(events: Events) -> DataFrame:
    last = "over (partition by seller order by expires, id rows between 9 preceding and current row)"
    average = F.expr(f"cast(sum(price) {last} div count(price) {last} as long)").alias("average")
    return _winners_in_batch(events).select(F.col("seller").alias("key"), average)


def _q7(events: Events) -> DataFrame:
    made = bids(events)
    highest = made.groupBy(F.window("dateTime", _WINDOW).alias("window")).agg(F.max("price").alias("highest"))
    ended = highest.select("highest", F.window_time("window").alias("end"))
    there = F.expr(f"price = highest and dateTime <= end and dateTime > end - interval {_WINDOW}")
    return made.join(ended, there).select("auction", "price", "bidder", "dateTime", "extra")


def _q8(events: Events) -> DataFrame:
    new = persons(events).select("id", "name", F.window("dateTime", _WINDOW).alias("window"))
    selling = auctions(events).select("seller", F.window("dateTime", _WINDOW).alias("of"))
    once = selling.dropDuplicates(["seller", "of"])
    return new.join(once, (new.id == once.seller) & (new.window == once["of"])).select("id", "name", "window.start")


def _q11(events: Events) -> DataFrame:
    return bids(events).groupBy("bidder", F.session_window("dateTime", _WINDOW)).count()


def _q12(events: Events) -> DataFrame:
    return bids(events).groupBy("bidder", F.window(F.current_timestamp(), _WINDOW)).count()


def _q14(events: Events) -> DataFrame:
    hour = F.hour("dateTime")
    kind = F.when(hour.between(8, 18), "dayTime").when((hour <= 6) | (hour >= 20), "nightTime").otherwise("otherTime")
    price = F.col("price") * F.lit(0.908)
    chosen = bids(events).where((price > 1_000_000) & (price < 50_000_000))
    counted = F.length("extra") - F.length(F.translate("extra", "c", ""))
    return chosen.select("auction", "bidder", price, kind, "dateTime", "extra", counted)


def _rank() -> Column:
    price = F.col("price")
    return F.when(price < 10_000, 1).when(price < 1_000_000, 2).otherwise(3)


def _distinct(events: Events, *by: str) -> DataFrame:
    """Numbers of distinct bidders and auctions per day, in all and by rank of the price."""
    day = F.window("dateTime", "1 day").alias("day")
    kinds = F.array(
        *(
            F.struct(F.lit(what).alias("what"), F.col(what).alias("id"), rank.alias("rank"))
            for what in ("bidder", "auction")
            for rank in (F.lit(0), _rank())
        )
    )
    once = (
        bids(events)
        .select(day, *by, F.explode(kinds).alias("one"))
        .select("day", *by, "one.*")
        .dropDuplicates(["day", *by, "what", "id", "rank"])
    )
    counts = [
        F.sum(F.when((F.col("what") == what) & (F.col("rank") == rank), 1).otherwise(0)).alias(f"{what}s_{rank}")
        for what in ("bidder", "auction")
        for rank in range(4)
    ]
    return once.groupBy("day", *by).agg(*counts)


def _q15(events: Events) -> DataFrame:
    return _distinct(events)


def _q16(events: Events) -> DataFrame:
    return _distinct(events, "channel")


def _q17(events: Events) -> DataFrame:
    ranks = [F.count(F.when(_rank() == rank, 1)).alias(f"rank{rank}_bids") for rank in (1, 2, 3)]
    prices = [make("price").alias(f"{make.__name__}_price") for make in (F.min, F.max, F.avg, F.sum)]
    day = F.date_format("dateTime", "yyyy-MM-dd").alias("day")
    return bids(events).groupBy("auction", day).agg(F.count("*").alias("total_bids"), *ranks, *prices)


def _q18(events: Events) -> DataFrame:
    return _in_jvm("latestBids", bids(events))


def _q18_in_batch(events: Events) -> DataFrame:
    latest = "row_number() over (partition by bidder, auction order by dateTime desc, price desc, extra)"
    return bids(events).withColumn("place", F.expr(latest)).where("place = 1").drop("place")


def _q19_in_batch(events: Events) -> DataFrame:
    highest = "row_number() over (partition by auction order by price desc, dateTime, bidder, extra)"
    return bids(events).withColumn("rank_number", F.expr(f"cast({highest} as long)")).where("rank_number <= 10")


def _q20(events: Events) -> DataFrame:
    bid, lot = bids(events).alias("b"), auctions(events).where("category = 10").alias("a")
    of_lot = ("itemName", "description", "initialBid", "reserve", "dateTime", "expires", "seller", "category", "extra")
    joined = bid.join(lot, F.expr("b.auction = a.id"))
    return joined.select("b.*", *(F.col(f"a.{name}").alias(f"auction_{name}") for name in of_lot))


_BY_TWS = "transformWithState: an event-time timer ends the auction; rows are final instead of updated"

_ALL = (
    Query("q3", "local items: auctions of a category with their sellers", _q3, _q3),
    Query(
        *("q4", "average winning bid by category"),
        stream=lambda events: _in_jvm("categoryAverages", lots(events)),
        batch=_q4_in_batch,
        key=("key",),
        form="two transformWithState, since an aggregation may not follow another one in update mode",
        needs_families=True,
    ),
    Query("q5", "hottest auction, sliding windows", _q5, _q5, form="of several hottest auctions the highest id"),
    Query(
        *("q6", "average of a seller's last ten winning bids"),
        stream=lambda events: _in_jvm("sellerAverages", lots(events)),
        batch=_q6_in_batch,
        form="two transformWithState; auctions in the order of their ends",
        needs_families=True,
    ),
    Query("q7", "highest bid, tumbling windows", _q7, _q7),
    Query("q8", "new users who sell, tumbling windows", _q8, _q8),
    Query(
        *("q9", "winning bids"),
        stream=lambda events: _in_jvm("winners", lots(events)),
        batch=_winners_in_batch,
        form=_BY_TWS,
        needs_families=True,
    ),
    Query("q11", "bids of a user's session", _q11, _q11),
    Query(
        *("q12", "bids of a user, windows of processing time", _q12, _q12),
        mode="update",
        key=("bidder", "window"),
        form="windows of the batch's time",
        by_clock=True,
    ),
    Query("q14", "filter and compute: the control, without state", _q14, _q14, stateful=False),
    Query(
        *("q15", "distinct bidders and auctions by day", _q15, _q15),
        form="dropDuplicates before the aggregation, since distinct aggregates are refused; no plain counts of bids",
    ),
    Query(
        *("q16", "distinct bidders and auctions by channel and day", _q16, _q16),
        form="as q15",
    ),
    Query("q17", "statistics of an auction's bids by day", _q17, _q17, mode="update", key=("auction", "day")),
    Query(
        *("q18", "latest bid of a user for an auction", _q18, _q18_in_batch),
        mode="update",
        key=("bidder", "auction"),
        form="transformWithState",
        needs_families=True,
    ),
    Query(
        *("q19", "ten highest bids for an auction"),
        stream=lambda events: _in_jvm("highestBids", bids(events)),
        batch=_q19_in_batch,
        mode="update",
        key=("auction", "rank_number"),
        form="transformWithState",
        needs_families=True,
    ),
    Query("q20", "bids with their auctions of a category", _q20, _q20),
)

QUERIES: Mapping[str, Query] = {query.name: query for query in _ALL}
"""Queries by name, in the order of Nexmark."""

LEFT_OUT: Mapping[str, str] = {
    "q0, q1, q2, q21, q22": "no state: q14 stands for them",
    "q10": "a sink to files, without state",
    "q13": "a join with a static table, without state",
    "q23": "a pattern of events: Spark has no MATCH_RECOGNIZE",
}
"""Queries of Nexmark that are not measured, and why."""
