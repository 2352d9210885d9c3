"""Dollars per month for the checkpoints of a query on an object store, from the requests that `make bench` has counted.

python -m benchmarks.cost benchmarks/results/FOLDER, where FOLDER has results of workloads on an object store.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.results import ResultFolder
from benchmarks.stores.summary import Summary

SECONDS_PER_MONTH = 30 * 86_400
INTERVALS = (1, 10, 60)
"""Seconds from the start of a batch to that of the next one."""


@dataclass(frozen=True)
class Price:
    """List prices of an object store, in US dollars.

    Args:
        store: name of the store.
        writes: 1,000 requests billed as writes, listings among them.
        reads: 1,000 requests billed as reads.
        gb_month: one GB for a month.
        source: page that has the prices.
    """

    store: str
    writes: float
    reads: float
    gb_month: float
    source: str


PRICES = (
    Price("S3 Standard, US East", 0.005, 0.0004, 0.023, "https://aws.amazon.com/s3/pricing/"),
    Price("Google Cloud Storage, Standard", 0.005, 0.0004, 0.020, "https://cloud.google.com/storage/pricing-examples"),
    Price(
        "Azure Blob Storage, hot",
        *(0.0055, 0.00044, 0.0208),
        "https://learn.microsoft.com/azure/storage/blobs/blob-storage-estimate-costs",
    ),
)
"""Prices as published in 2025, without free tiers; those of Azure are its documentation's samples."""


@dataclass(frozen=True)
class Bill:
    """Requests of a provider on a workload, and what they cost.

    Args:
        workload: name of the workload.
        provider: name of the provider.
        writes: requests per batch that are billed as writes.
        reads: requests per batch that are billed as reads.
        dollars: dollars per month by store, and by the seconds between batches.
    """

    workload: str
    provider: str
    writes: float
    reads: float
    dollars: dict[str, dict[int, float]]


def dollars(writes: float, reads: float, interval_seconds: float, price: Price, stored_gb: float = 0.0) -> float:
    """Dollars per month for a query that runs all the time.

    Args:
        writes: requests per batch that are billed as writes.
        reads: requests per batch that are billed as reads.
        interval_seconds: seconds from the start of a batch to that of the next one.
        price: prices of the store.
        stored_gb: size of the retained checkpoints, in GB.
    """
    batches = SECONDS_PER_MONTH / interval_seconds
    return batches * (writes * price.writes + reads * price.reads) / 1000 + stored_gb * price.gb_month


def bills(summary: Summary) -> Iterator[Bill]:
    """Bills of all providers and workloads whose requests were counted."""
    for workload in summary.workloads():
        for provider in summary.providers(workload):
            writes = summary.figure(workload, provider, "write_requests")
            reads = summary.figure(workload, provider, "read_requests")
            if writes is not None and reads is not None:
                by_store = {
                    price.store: {each: dollars(writes.median, reads.median, each, price) for each in INTERVALS}
                    for price in PRICES
                }
                yield Bill(workload, provider, writes.median, reads.median, by_store)


def table(found: Sequence[Bill]) -> Table:
    """A row per provider and workload."""
    shown = Table()
    for heading in ("workload", "provider", "writes", "reads"):
        shown.add_column(heading, justify="right" if heading in ("writes", "reads") else "left")
    for price in PRICES:
        for each in INTERVALS:
            shown.add_column(f"{price.store.partition(',')[0]}, every {each} s", justify="right")
    for bill in found:
        amounts = [bill.dollars[price.store][each] for price in PRICES for each in INTERVALS]
        cells = [f"${amount:,.2f}" if amount < 100 else f"${amount:,.0f}" for amount in amounts]
        title = PROVIDERS[bill.provider].title
        shown.add_row(bill.workload, title, f"{bill.writes:.1f}", f"{bill.reads:.1f}", *cells)
    return shown


def main(arguments: Sequence[str]) -> int:
    """Shows the bills; returns 1 if no requests were counted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description="dollars per month for requests")
    parser.add_argument("folder", type=Path, help="results of make bench")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    found = list(bills(Summary(ResultFolder(options.folder).records())))
    if not found:
        print(
            f"no run in {options.folder} has counted requests: make bench BENCH_ARGS='--only s3-8-0ms'", file=sys.stderr
        )
        return 1
    if options.json:
        print(
            json.dumps({"prices": [asdict(one) for one in PRICES], "bills": [asdict(one) for one in found]}, indent=1)
        )
    else:
        Console(highlight=False, width=None if sys.stdout.isatty() else 200).print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
