"""The page about money shows the counted requests, and what they cost."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks.cost import INTERVALS, PRICES, dollars
from tests.docs.pages import DOCS

TITLES = {"ckpt": "spark-ckpt", "hdfs": "HDFSBacked", "rocksdb-changelog": "RocksDB, changelog"}
ROW = re.compile(r"^\| (spark-ckpt|HDFSBacked|RocksDB, changelog) \|(.*)\|$", re.MULTILINE)


@pytest.fixture(scope="module")
def bills() -> dict[str, Any]:
    found = json.loads((DOCS / "plots" / "requests.json").read_text(encoding="utf-8"))
    assert {bill["workload"] for bill in found["bills"]} == {"s3-8-0ms"}
    return {TITLES[bill["provider"]]: bill for bill in found["bills"]}


def rows() -> list[tuple[str, list[str]]]:
    text = (DOCS / "cost.md").read_text(encoding="utf-8")
    return [(title, [cell.strip() for cell in cells.split("|")]) for title, cells in ROW.findall(text)]


def test_the_first_table_has_the_requests(bills: dict[str, Any]) -> None:
    expected = [(title, [f"{bill['writes']:.1f}", f"{bill['reads']:.1f}"]) for title, bill in bills.items()]
    assert rows()[:3] == expected


def test_the_second_table_has_what_they_cost(bills: dict[str, Any]) -> None:
    expected = []
    for price in PRICES:
        for place, (title, bill) in enumerate(bills.items()):
            amounts = [dollars(bill["writes"], bill["reads"], each, price) for each in INTERVALS]
            cells = [f"{amount:,.2f}" if amount < 100 else f"{amount:,.0f}" for amount in amounts]
            expected.append((title, [price.store if place == 0 else "", *cells]))
    assert rows()[3:] == expected
