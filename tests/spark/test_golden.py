"""This release continues queries from golden locations of earlier releases, to the batch answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_ckpt import __version__
from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.golden.locations import Golden, as_texts, batches_of, feeds_of, golden_locations, merged, run
from tests.golden.queries import CHECKPOINT, QUERIES, SAVEPOINT
from tests.golden.shapes import shape_of
from tests.support.provider import ProviderUnderTest
from tests.support.sinks import assert_same_rows
from tests.support.spark_version import MINOR, order

GOLDEN = golden_locations()
NO_NEWS = (
    "This release writes something that no golden location of it has. If it is not released yet, run 'make golden'; "
    "otherwise raise the version first. If older releases would misread it, it needs a feature (docs/format-policy.md)"
)

CORE = {"compressed", "join", "join-in-column-families", "inline-with-state-ids", "transform-with-state"}
"""Queries whose locations every Spark has to continue; the formats of the others occur in these too."""


def marks(golden: Golden) -> list[pytest.MarkDecorator]:
    """Marks of a location's test."""
    return [pytest.mark.core] if golden.query.name in CORE else []


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: golden locations are ours."""
    if not provider.is_ours:
        pytest.skip("about our formats")


@pytest.mark.parametrize("golden", [pytest.param(each, id=str(each), marks=marks(each)) for each in GOLDEN])
def test_continues_to_the_batch_answer(golden: Golden, spark: SparkSession, tmp_path: Path) -> None:
    query = golden.query
    if order(MINOR) < order(query.since):
        pytest.skip(f"Spark runs this query since {query.since}, this is {MINOR}")
    location = golden.copy_to(tmp_path)
    if query.root == SAVEPOINT:
        location = tmp_path / CHECKPOINT
        restore(LocalStorage(tmp_path / SAVEPOINT), LocalStorage(location))
    for key, value in query.settings().items():
        spark.conf.set(key, value)
    feeds = feeds_of(query, tmp_path)
    earlier = {int(batch): rows for batch, rows in golden.summary["output"].items()}
    for name, batches in batches_of(query).items():
        feeds[name].drop(batches[-1])
    later = run(query, lambda: query.plan(spark, feeds), tmp_path, location)
    assert set(later) > set() and min(later) >= len(earlier), "the query did not continue where it had ended"
    outputs = earlier | {batch: as_texts(rows) for batch, rows in later.items()}
    assert_same_rows(merged(query, outputs), [tuple(row) for row in as_texts(query.answer(spark, feeds))])
    report = verify(LocalStorage(location), everything=True)
    assert report.is_whole, report
    known = set().union(*(shape_of(g.folder / g.query.root) for g in GOLDEN if g.release == __version__))
    assert shape_of(location) - known == set(), NO_NEWS


def test_this_release_has_a_golden_location_of_each_query() -> None:
    assert {g.query.name for g in GOLDEN if g.release == __version__} == {query.name for query in QUERIES}
