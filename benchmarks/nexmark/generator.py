"""Events of Nexmark: persons, auctions and bids in one stream, with the distributions of the reference generator.

Proportions, hot keys, lead of ids, prices and sizes are those of `com.github.nexmark.flink.generator` at its default
configuration. The random numbers are numpy's, so single values differ from the reference.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PERSON, AUCTION, BID = 0, 1, 2
"""Values of `event_type`."""

EPOCH_US = 1_700_006_400_000_000
"""Event time of the first event, in microseconds since 1970: midnight UTC, so that short streams stay in one day."""

_PERSONS, _AUCTIONS, _BIDS = 1, 3, 46
_CYCLE = _PERSONS + _AUCTIONS + _BIDS
_FIRST_ID = 1000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_ACTIVE_PEOPLE, _IN_FLIGHT_AUCTIONS = 1000, 100
_ID_LEAD = 10
_HOT_GROUP = 100
"""The hot seller, bidder or auction is the first of each hundred."""
_HOT_AUCTION, _HOT_SELLER, _HOT_BIDDER = 2, 4, 4
"""Of so many choices, all but one are hot."""
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_CHANNELS = 10_000
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_EXTRA = {PERSON: 120, AUCTION: 360, BID: 50}
"""Average length of `extra`: what an event lacks of 200, 500 and 100 bytes."""
ROW_GROUP = 8_192
"""Rows of a row group: several per file, so that all cores can read it."""

Ints = np.ndarray[Any, np.dtype[np.int64]]
Strings = np.ndarray[Any, Any]

PERSON_TYPE = pa.struct(
    [
        ("id", pa.int64()),
        *((name, pa.string()) for name in ("name", "emailAddress", "creditCard", "city", "state")),
        ("dateTime", pa.timestamp("us", tz="UTC")),
        ("extra", pa.string()),
    ]
)
AUCTION_TYPE = pa.struct(
    [
        ("id", pa.int64()),
        ("itemName", pa.string()),
        ("description", pa.string()),
        ("initialBid", pa.int64()),
        ("reserve", pa.int64()),
        ("dateTime", pa.timestamp("us", tz="UTC")),
        ("expires", pa.timestamp("us", tz="UTC")),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("extra", pa.string()),
    ]
)
BID_TYPE = pa.struct(
    [
        *((name, pa.int64()) for name in ("auction", "bidder", "price")),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("dateTime", pa.timestamp("us", tz="UTC")),
        ("extra", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("event_type", pa.int32()),
        ("person", PERSON_TYPE),
        ("auction", AUCTION_TYPE),
        ("bid", BID_TYPE),
        ("dateTime", pa.timestamp("us", tz="UTC")),
    ]
)
"""One row per event; of the three structs, one is set. The same as `datagen` of Nexmark for Flink."""


@dataclass(frozen=True)
class Stream:
    """A stream of events, cut into batches.

    Args:
        events: events per batch, a multiple of 50.
        batches: batches, without the small ones and the last one.
        rate: events per second of event time.
        seed: seed of the random numbers.
        small: batches before them with a twentieth of the events.
    """

    events: int
    batches: int
    rate: int
    seed: int
    small: int = 0

    def __post_init__(self) -> None:
        if any(size % _CYCLE for size in self.sizes):
            raise ValueError(f"batches of {sorted(set(self.sizes))} events: not all are multiples of {_CYCLE}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Events of each batch but the last one."""
        return (*[self.events // 20] * self.small, *[self.events] * self.batches)

    @property
    def name(self) -> str:
        """Name of its directory."""
        return f"events-{self.small}s-{self.batches}x{self.events}-rate{self.rate}-seed{self.seed}"

    def tables(self) -> Iterator[pa.Table]:
        """Events of each batch; the last one has one event of each type, a week later, which closes all windows."""
        rng = np.random.default_rng(self.seed)
        begin = 0
        for size in self.sizes:
            yield _batch(np.arange(begin, begin + size), self.rate, rng)
            begin += size
        yield _last(EPOCH_US + 7 * 86_400_000_000)


def prepare(folder: Path, stream: Stream) -> Path:
    """Writes the stream below `folder` if missing; returns its directory, with one Parquet file per batch."""
    target = folder / stream.name
    if target.exists():
        return target
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for number, table in enumerate(stream.tables()):
        file = partial / f"{number:06}.parquet"
        pq.write_table(table, file, row_group_size=ROW_GROUP)
        os.utime(file, (EPOCH_US // 1_000_000 + number,) * 2)  # the file source reads the oldest file first
    partial.rename(target)
    return target


def _batch(numbers: Ints, rate: int, rng: np.random.Generator) -> pa.Table:
    """Events with these numbers, in their order."""
    offsets = numbers % _CYCLE
    types = np.where(offsets < _PERSONS, PERSON, np.where(offsets < _PERSONS + _AUCTIONS, AUCTION, BID))
    structs = [
        make(numbers[types == kind], rate, rng)
        for kind, make in ((PERSON, _persons), (AUCTION, _auctions), (BID, _bids))
    ]
    return _table(types, structs, _times(numbers, rate))


def _table(types: Ints, structs: list[pa.StructArray], times: Ints) -> pa.Table:
    """Rows with the structs of each type at the rows of that type."""
    columns = []
    for kind, struct in zip((PERSON, AUCTION, BID), structs, strict=True):
        places = np.full(len(types), -1, dtype=np.int64)
        places[types == kind] = np.arange(len(struct))
        columns.append(struct.take(pa.array(places, mask=places < 0)))
    return pa.table([pa.array(types, pa.int32()), *columns, _timestamps(times)], schema=SCHEMA)


def _persons(numbers: Ints, rate: int, rng: np.random.Generator) -> pa.StructArray:
    count = len(numbers)
    names = _joined(_choice(rng, _FIRST_NAMES, count), " ", _choice(rng, _LAST_NAMES, count))
    emails = _joined(_letters(rng, count, 5), "@", _joined(_letters(rng, count, 4), ".com", np.full(count, "")))
    cards = np.char.zfill(rng.integers(0, 10**16, count).astype(str), 16)
    return _struct(
        PERSON_TYPE,
        _last_person(numbers) + _FIRST_ID,
        names,
        emails,
        cards,
        _choice(rng, _CITIES, count),
        _choice(rng, _STATES, count),
        _times(numbers, rate),
        _extra(rng, count, PERSON),
    )


def _auctions(numbers: Ints, rate: int, rng: np.random.Generator) -> pa.StructArray:
    count = len(numbers)
    times = _times(numbers, rate)
    hot = rng.integers(0, _HOT_SELLER, count) > 0
    sellers = np.where(hot, _last_person(numbers) // _HOT_GROUP * _HOT_GROUP, _any_person(numbers, rng))
    starts = _prices(rng, count)
    # As many events as the auctions in flight span; an auction lasts up to twice that long.
    span_us = (_IN_FLIGHT_AUCTIONS * _CYCLE // _AUCTIONS) * 1_000_000 // rate
    lengths = 1000 + rng.integers(0, max(2 * span_us // 1000, 1), count) * 1000
    return _struct(
        AUCTION_TYPE,
        _last_auction(numbers) + _FIRST_ID,
        _letters(rng, count, 11),
        _letters(rng, count, 51),
        starts,
        starts + _prices(rng, count),
        times,
        times + lengths,
        sellers + _FIRST_ID,
        _FIRST_CATEGORY + rng.integers(0, _CATEGORIES, count),
        _extra(rng, count, AUCTION),
    )


def _bids(numbers: Ints, rate: int, rng: np.random.Generator) -> pa.StructArray:
    count = len(numbers)
    last = _last_auction(numbers)
    least = np.maximum(last - _IN_FLIGHT_AUCTIONS, 0)
    any_auction = least + (rng.random(count) * (last - least + 1 + _ID_LEAD)).astype(np.int64)
    auctions = np.where(rng.integers(0, _HOT_AUCTION, count) > 0, last // _HOT_GROUP * _HOT_GROUP, any_auction)
    hot_bidder = _last_person(numbers) // _HOT_GROUP * _HOT_GROUP + 1
    bidders = np.where(rng.integers(0, _HOT_BIDDER, count) > 0, hot_bidder, _any_person(numbers, rng))
    hot = _choice(rng, _HOT_CHANNELS, count)
    numbered = np.char.add("channel-", rng.integers(0, _CHANNELS, count).astype(str))
    channels = np.where(rng.integers(0, 2, count) > 0, hot, numbered)
    urls = _joined(np.full(count, "https://www.nexmark.com/"), "item.htm?query=1&channel_id=", channels)
    return _struct(
        BID_TYPE,
        auctions + _FIRST_ID,
        bidders + _FIRST_ID,
        _prices(rng, count),
        channels,
        urls,
        _times(numbers, rate),
        _extra(rng, count, BID),
    )


def _last(time: int) -> pa.Table:
    """One event of each type at this time, about persons and auctions that nothing else mentions."""
    times, text, zero = np.array([time]), np.array(["last"]), np.array([0])
    structs = [
        _struct(PERSON_TYPE, np.array([-1]), *[text] * 5, times, text),
        _struct(
            AUCTION_TYPE, np.array([-2]), text, text, *[np.array([0])] * 2, times, times, *[np.array([-3])] * 2, text
        ),
        _struct(BID_TYPE, np.array([-4]), np.array([-5]), zero, text, text, times, text),
    ]
    return _table(np.array([PERSON, AUCTION, BID]), structs, np.repeat(times, 3))


def _struct(kind: pa.StructType, *columns: Ints | Strings | pa.Array) -> pa.StructArray:
    fields = [kind.field(place) for place in range(kind.num_fields)]
    arrays = [
        _timestamps(column) if pa.types.is_timestamp(field.type) else pa.array(column, field.type)
        for field, column in zip(fields, columns, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _times(numbers: Ints, rate: int) -> Ints:
    """Event times in microseconds, in whole milliseconds."""
    return EPOCH_US + numbers * 1000 // rate * 1000


def _timestamps(times: Ints) -> pa.Array:
    return pa.array(times, pa.timestamp("us", tz="UTC"))


def _last_person(numbers: Ints) -> Ints:
    """Number of the newest person when an event happens."""
    return numbers // _CYCLE * _PERSONS + np.minimum(numbers % _CYCLE, _PERSONS - 1)


def _last_auction(numbers: Ints) -> Ints:
    """Number of the newest auction when an event happens; the first one is taken for there already."""
    epochs, offsets = numbers // _CYCLE, numbers % _CYCLE
    before = epochs * _AUCTIONS - 1
    last = np.where(offsets < _PERSONS, before, before + np.minimum(offsets - _PERSONS + 1, _AUCTIONS))
    return np.maximum(last, 0)


def _any_person(numbers: Ints, rng: np.random.Generator) -> Ints:
    """Persons among the newest, or soon to come."""
    people = _last_person(numbers) + 1
    active: Ints = np.minimum(people, _ACTIVE_PEOPLE)
    return people - active + (rng.random(len(numbers)) * (active + _ID_LEAD)).astype(np.int64)


def _prices(rng: np.random.Generator, count: int) -> Ints:
    return np.round(10.0 ** (rng.random(count) * 6) * 100).astype(np.int64)


def _choice(rng: np.random.Generator, among: tuple[str, ...], count: int) -> Strings:
    return np.array(among)[rng.integers(0, len(among), count)]


def _letters(rng: np.random.Generator, count: int, length: int) -> Strings:
    """Random lowercase strings of this length."""
    codes = rng.integers(ord("a"), ord("z") + 1, count * length, dtype=np.uint8)
    return codes.view(f"S{length}").astype(str) if count else np.empty(0, dtype=f"U{length}")


def _extra(rng: np.random.Generator, count: int, kind: int) -> pa.Array:
    """Random strings, a fifth shorter to a fifth longer than the average."""
    average = _EXTRA[kind]
    lengths = rng.integers(average * 4 // 5, average * 6 // 5 + 1, count)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = rng.integers(ord("a"), ord("z") + 1, int(ends[-1]), dtype=np.uint8)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends.tobytes()), pa.py_buffer(letters.tobytes()))


def _joined(left: Strings, middle: str, right: Strings) -> Strings:
    return np.char.add(np.char.add(left, middle), right)
