"""The state of a `transformWithState` whose schemas have changed moves in and out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_ckpt.migrate import export_location, import_location
from tests.migrate.queries import ALL, BEFORE, PROVIDERS, offer, ours_like, run
from tests.support.spark_version import since

pytestmark = [pytest.mark.long, since("4.0", "transformWithState")]


@pytest.mark.parametrize(
    ("name", "began_with"), [("evolving", "changelog"), ("evolving", "ids"), ("evolving-avro", "avro")]
)
@pytest.mark.usefixtures("transfer_queries")
def test_each_batch_is_equal(name: str, began_with: str, spark: SparkSession, tmp_path: Path) -> None:
    first, second, third = (f"{name}-{step}" for step in (1, 2, 3))
    theirs, ours = PROVIDERS[began_with], ours_like(began_with)
    location, kept, new = (tmp_path / place for place in ("location", "kept", "new"))
    offer(tmp_path, BEFORE - 2)
    run(spark, first, tmp_path, location, theirs)
    offer(tmp_path, BEFORE)
    run(spark, second, tmp_path, location, theirs)
    schemas = [path for path in (location / "state/0/_stateSchema").rglob("*") if not path.name.endswith(".crc")]
    assert len([path for path in schemas if path.is_file()]) == 2
    shutil.copytree(location, kept)

    imported = import_location(spark, str(location), force=True)
    (store,) = imported.stores
    assert store.families["step1"] and store.families["step2"]  # the first is left of the earlier schema
    for files, query in ((BEFORE + 1, second), (BEFORE + 2, third)):
        offer(tmp_path, files)
        expected = run(spark, query, tmp_path, kept, theirs)
        assert run(spark, query, tmp_path, location, ours) == expected
        assert expected
    (exported,) = export_location(spark, str(location), str(new), "spark-rocksdb").stores
    assert exported.families["step1"] == store.families["step1"] and exported.families["step3"]
    offer(tmp_path, ALL)
    expected = run(spark, third, tmp_path, kept, theirs)
    assert run(spark, third, tmp_path, new, theirs) == expected
    assert expected
