"""State that several releases of Spark have written comes over, and goes back, exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_ckpt.migrate import export_location, import_location
from tests.migrate.golden import Stored, stored_locations
from tests.migrate.queries import ALL, PROVIDERS, QUERIES, offer, ours_like, run, state_format
from tests.support.spark_version import MINOR, order

STORED = stored_locations()
MARKS = {"3.5.7-inner-join--hdfs": [pytest.mark.core], "4.0.2-count--ids": [], "4.1.4-outer-join-3--changelog": []}
"""Marks of some locations; the others take a while together."""


def each(stored: list[Stored]) -> list[object]:
    """Parameters with marks."""
    return [pytest.param(each, id=str(each), marks=MARKS.get(str(each), [pytest.mark.long])) for each in stored]


def skip_unless_readable(stored: Stored) -> None:
    """Skips what this Spark lacks."""
    since, minor = QUERIES[stored.query].since, stored.release.rpartition(".")[0]
    if order(MINOR) < order(since):
        pytest.skip(f"Spark runs this query since {since}, this is {MINOR}")
    if order(MINOR) < order(minor):
        pytest.skip(f"Spark {minor} wrote it, this is {MINOR}: Spark promises no way back")


@pytest.mark.parametrize("stored", each(STORED))
def test_an_import_continues_like_the_release_that_wrote_it(
    stored: Stored, spark: SparkSession, tmp_path: Path
) -> None:
    skip_unless_readable(stored)
    location, expected = stored.extract_to(tmp_path), stored.expected()
    imported = import_location(spark, str(location))
    assert sum(store.rows or 0 for store in imported.stores) > 0
    offer(tmp_path, ALL)
    later = {batch: rows for batch, rows in expected.items() if batch > imported.batch_id}
    assert run(spark, stored.query, tmp_path, location, ours_like(stored.provider)) == later
    assert later and (sum(map(len, later.values())) > 0 or not QUERIES[stored.query].has_rows_later)


@pytest.mark.long
@pytest.mark.parametrize("stored", STORED, ids=str)
def test_an_import_goes_back(stored: Stored, spark: SparkSession, tmp_path: Path) -> None:
    skip_unless_readable(stored)
    location, expected = stored.extract_to(tmp_path), stored.expected()
    import_location(spark, str(location))
    exported = export_location(spark, str(location), str(tmp_path / "new"), state_format(stored.provider))
    offer(tmp_path, ALL)
    later = {batch: rows for batch, rows in expected.items() if batch > exported.batch_id}
    assert run(spark, stored.query, tmp_path, tmp_path / "new", PROVIDERS[stored.provider]) == later
