"""The queries of Nexmark in Flink SQL, in the form that `benchmarks.nexmark.queries` has, so that answers are equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.nexmark.generator import AUCTION, BID, PERSON

_TYPES = {
    **dict.fromkeys(("id", "initialBid", "reserve", "seller", "category", "auction", "bidder", "price"), "BIGINT"),
    **dict.fromkeys(("name", "city", "state", "itemName", "description", "channel", "url", "extra"), "STRING"),
}
_EVENTS = {"person": PERSON, "auction": AUCTION, "bid": BID}
_WINDOW = "INTERVAL '10' SECOND"
_TUMBLE = f"DESCRIPTOR(made), {_WINDOW}"


@dataclass(frozen=True)
class Query:
    """A query.

    Args:
        sql: over the views `person`, `auction` and `bid`; `made` is their event time.
        read: columns of each event that it reads.
        checked: columns of its answer whose sums are compared, by the name in Spark's answer.
    """

    sql: str
    read: Mapping[str, tuple[str, ...]]
    checked: Mapping[str, str]

    @property
    def type(self) -> str:
        """Type of the rows to read from flat files of events; the event time is in microseconds."""
        columns = ", ".join(f"{event}_{name} {_TYPES[name]}" for event, names in self.read.items() for name in names)
        return f"ROW<event_type INT, {columns}, dateTime BIGINT>"

    @property
    def type_of_objects(self) -> str:
        """The same of events with an object per kind, as JSON has them."""
        objects = ", ".join(
            f"{event} ROW<{', '.join(f'`{name}` {_TYPES[name]}' for name in names)}>"
            for event, names in self.read.items()
        )
        return f"ROW<event_type INT, {objects}, dateTime TIMESTAMP_LTZ(3)>"

    @property
    def views_of_objects(self) -> str:
        """Statements that create the views over such events."""
        return self._views(lambda event, name: f"`{event}`.`{name}`")

    @property
    def views(self) -> str:
        """Statements that create the views."""
        return self._views(lambda event, name: f"{event}_{name}")

    def _views(self, field: Callable[[str, str], str]) -> str:
        found = []
        for event, names in self.read.items():
            columns = ", ".join(f"{field(event, name)} AS {name}" for name in names)
            rows = f"SELECT {columns}, ts AS made FROM events WHERE event_type = {_EVENTS[event]}"
            found.append(f"CREATE TEMPORARY VIEW {event} AS {rows};")
        return " ".join(found)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_AUCTION = ("id", "itemName", "description", "initialBid", "reserve", "seller", "category", "extra")
_BID = ("auction", "bidder", "price", "channel", "url", "extra")
_DAY = "DATE_FORMAT(made, 'yyyy-MM-dd')"

QUERIES: Mapping[str, Query] = {
    "q3": Query(
        """SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
        {"person": ("id", "name", "city", "state"), "auction": ("id", "seller", "category")},
        _same("id"),
    ),
    "q5": Query(
        """SELECT window_start, auction, bids FROM (
            SELECT *, ROW_NUMBER() OVER (
                PARTITION BY window_start, window_end ORDER BY bids DESC, auction DESC) AS place
            FROM (SELECT window_start, window_end, auction, COUNT(*) AS bids
                FROM TABLE(HOP(TABLE bid, DESCRIPTOR(made), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
                GROUP BY window_start, window_end, auction)) WHERE place = 1""",
        {"bid": ("auction",)},
        {"auction": "hottest.auction", "bids": "hottest.count"},
    ),
    "q7": Query(
        f"""SELECT b.auction, b.price, b.bidder, b.made, b.extra FROM bid AS b JOIN (
            SELECT MAX(price) AS highest, window_time AS ended FROM TABLE(TUMBLE(TABLE bid, {_TUMBLE}))
            GROUP BY window_start, window_end, window_time) AS h
        ON b.price = h.highest AND b.made BETWEEN h.ended - INTERVAL '9.999' SECOND AND h.ended""",
        {"bid": ("auction", "bidder", "price", "extra")},
        _same("auction", "price", "bidder"),
    ),
    "q8": Query(
        f"""SELECT p.id, p.name, p.window_start FROM (
            SELECT id, name, window_start, window_end FROM TABLE(TUMBLE(TABLE person, {_TUMBLE}))
            GROUP BY id, name, window_start, window_end) AS p
        JOIN (SELECT seller, window_start, window_end FROM TABLE(TUMBLE(TABLE auction, {_TUMBLE}))
            GROUP BY seller, window_start, window_end) AS a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end""",
        {"person": ("id", "name"), "auction": ("seller",)},
        _same("id"),
    ),
    "q11": Query(
        f"""SELECT bidder, window_start, COUNT(*) AS bids
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, {_TUMBLE})) GROUP BY bidder, window_start, window_end""",
        {"bid": ("bidder",)},
        {"bidder": "bidder", "bids": "count"},
    ),
    "q17": Query(
        f"""SELECT auction, {_DAY} AS `day`, COUNT(*) AS total_bids,
            COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
            COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
            COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
            MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
        FROM bid GROUP BY auction, {_DAY}""",
        {"bid": ("auction", "price")},
        _same("auction", "total_bids", "rank1_bids", "rank2_bids", "rank3_bids", "min_price", "max_price", "sum_price"),
    ),
    "q18": Query(
        """SELECT auction, bidder, price, channel, url, made, extra FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY made DESC) AS place FROM bid)
        WHERE place = 1""",
        {"bid": _BID},
        _same("auction", "bidder"),
    ),
    "q20": Query(
        f"""SELECT {", ".join(f"b.{name}" for name in _BID)}, b.made, a.made AS auction_made,
            {", ".join(f"a.{name} AS auction_{name}" for name in _AUCTION if name != "id")}
        FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10""",
        {"auction": _AUCTION, "bid": _BID},
        _same("auction", "bidder", "price", "auction_seller"),
    ),
}
"""Queries by name, in the order of Nexmark: those that keep state, and that Flink SQL and Structured Streaming can both
say with one answer."""
