from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.nexmark.generator import AUCTION, BID, PERSON, SCHEMA, Stream, prepare

STREAM = Stream(events=50_000, batches=2, rate=10_000, seed=1)


def column(struct: str, name: str, number: int = 1) -> list[Any]:
    """Values of a field in a batch."""
    table = list(STREAM.tables())[number]
    kind = {"person": PERSON, "auction": AUCTION, "bid": BID}[struct]
    chosen = table.filter(pc.equal(table["event_type"], kind))[struct].combine_chunks()
    return list(pc.struct_field(chosen, name).to_pylist())


def share(values: list[bool]) -> float:
    return sum(values) / len(values)


def test_one_person_three_auctions_and_46_bids_of_50_events() -> None:
    first, _, last = STREAM.tables()
    assert first.schema == SCHEMA
    assert [pc.sum(pc.equal(first["event_type"], kind)).as_py() for kind in (PERSON, AUCTION, BID)] == [
        1_000,
        3_000,
        46_000,
    ]
    assert last["event_type"].to_pylist() == [PERSON, AUCTION, BID]


def test_each_event_has_one_struct_with_its_time() -> None:
    for table in STREAM.tables():
        for kind, name in ((PERSON, "person"), (AUCTION, "auction"), (BID, "bid")):
            there = pc.equal(table["event_type"], kind)
            assert pc.is_valid(table[name]).equals(there)
            assert pc.struct_field(table.filter(there)[name], "dateTime").equals(table.filter(there)["dateTime"])


def test_ids_are_consecutive_over_the_batches() -> None:
    assert column("person", "id", 0) + column("person", "id", 1) == list(range(1000, 3000))
    assert column("auction", "id", 0) + column("auction", "id", 1) == list(range(1000, 7000))


def test_times_never_fall_and_no_batch_begins_before_the_last_one_has_ended() -> None:
    latest = None
    for table in STREAM.tables():
        times = table["dateTime"].to_pylist()
        assert times == sorted(times)
        assert latest is None or times[0] > latest
        latest = times[-1]


def test_half_of_the_bids_go_to_hot_auctions_and_the_others_to_those_in_flight() -> None:
    auctions = column("bid", "auction")
    assert share([(auction - 1000) % 100 == 0 for auction in auctions]) == pytest.approx(0.505, abs=0.01)
    assert min(auctions) >= 1000 + 3000 - 200
    assert max(auctions) < 1000 + 6000 + 10


def test_three_quarters_of_the_bids_are_by_hot_bidders_and_of_the_auctions_by_hot_sellers() -> None:
    assert share([(bidder - 1000) % 100 == 1 for bidder in column("bid", "bidder")]) == pytest.approx(0.7525, abs=0.01)
    sellers = column("auction", "seller")
    assert share([(seller - 1000) % 100 == 0 for seller in sellers]) == pytest.approx(0.7525, abs=0.03)


def test_prices_are_spread_over_six_decades() -> None:
    prices = column("bid", "price")
    assert min(prices) >= 100
    assert max(prices) <= 100_000_000
    assert share([price < 10_000 for price in prices]) == pytest.approx(1 / 3, abs=0.02)


def test_half_of_the_channels_are_hot() -> None:
    hot = [not channel.startswith("channel-") for channel in column("bid", "channel")]
    assert share(hot) == pytest.approx(0.5, abs=0.02)
    assert len(set(column("bid", "channel"))) > 5_000


def test_auctions_last_as_long_as_twice_the_auctions_in_flight_at_most() -> None:
    lengths = [
        (end - begin).total_seconds()
        for begin, end in zip(column("auction", "dateTime"), column("auction", "expires"), strict=True)
    ]
    assert min(lengths) > 0
    assert max(lengths) <= 2 * 100 * 50 / 3 / 10_000 + 0.001


def test_the_seed_decides() -> None:
    assert list(STREAM.tables()) == list(STREAM.tables())
    assert next(STREAM.tables()) != next(Stream(50_000, 2, 10_000, seed=2).tables())


def test_a_file_per_batch_in_their_order_written_once(tmp_path: Path) -> None:
    small = Stream(events=100, batches=3, rate=100, seed=1)
    folder = prepare(tmp_path, small)
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    assert files == sorted(files)
    assert pa.concat_tables(map(pq.read_table, files)) == pa.concat_tables(small.tables())
    before = {file: file.stat().st_mtime_ns for file in files}
    assert prepare(tmp_path, small) == folder
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_small_batches_come_first() -> None:
    small = Stream(events=1000, batches=2, rate=100, seed=1, small=3)
    assert [len(table) for table in small.tables()] == [50, 50, 50, 1000, 1000, 3]


def test_batches_have_whole_cycles_of_events() -> None:
    with pytest.raises(ValueError, match=r"batches of \[120\] events: not all are multiples of 50"):
        Stream(events=120, batches=1, rate=100, seed=1)
