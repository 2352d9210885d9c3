from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.cost import INTERVALS, PRICES, Price, dollars, main
from benchmarks.stores.results import ResultFolder
from tests.benchmarks.records import record

S3 = PRICES[0]


def test_a_month_has_as_many_batches_as_intervals() -> None:
    assert dollars(10, 0, 10, S3) == pytest.approx(259_200 * 10 * 0.005 / 1000)
    assert dollars(0, 10, 60, S3) == pytest.approx(43_200 * 10 * 0.0004 / 1000)


def test_storage_is_for_the_month_whatever_the_interval() -> None:
    assert dollars(0, 0, 1, S3, stored_gb=100) == dollars(0, 0, 60, S3, stored_gb=100) == pytest.approx(2.3)


@pytest.mark.parametrize("price", PRICES, ids=lambda price: price.store)
def test_a_write_costs_more_than_a_read(price: Price) -> None:
    assert price.writes > 10 * price.reads > 0
    assert price.source.startswith("https://")


def test_shows_the_bill_of_each_provider(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ResultFolder(tmp_path)
    folder.append(record("s3-8-0ms", "ckpt", write_requests=[10.0], read_requests=[5.0]))
    folder.append(record("s3-8-0ms", "rocksdb", write_requests=[100.0], read_requests=[200.0]))
    folder.append(record("count-1", "ckpt", batch_ms=[1.0]))
    assert main([str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(bill["provider"], bill["writes"], bill["reads"]) for bill in found["bills"]] == [
        ("ckpt", 10, 5),
        ("rocksdb", 100, 200),
    ]
    for bill in found["bills"]:
        assert bill["dollars"][S3.store] == {
            str(each): pytest.approx(dollars(bill["writes"], bill["reads"], each, S3)) for each in INTERVALS
        }
    assert main([str(tmp_path)]) == 0
    assert "RocksDB" in capsys.readouterr().out


def test_results_without_requests_say_how_to_count_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ResultFolder(tmp_path).append(record("count-1", "ckpt", batch_ms=[1.0]))
    assert main([str(tmp_path)]) == 1
    assert "make bench BENCH_ARGS='--only s3-8-0ms'" in capsys.readouterr().err
