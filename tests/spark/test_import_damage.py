"""Damaged state of Spark's providers, beyond the first cases of `test_import.py`: each is a typed error."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pyspark.sql import SparkSession

from spark_ckpt.migrate import import_location
from spark_ckpt.migrate.errors import StateTransferError
from tests.migrate.queries import QUERIES, ROW_CHECKSUM, stop_query
from tests.migrate.steps import files_of
from tests.support.spark_version import MINOR, order, since
from tests.support.state_location import schema_v2

pytestmark = pytest.mark.long

Damage: TypeAlias = Callable[[bytes], bytes | None]
"""The new content of a file; None for no file."""

UNREADABLE, NO_SCHEMA = "SourceStateError", "StateSchemaError"


def truncated(data: bytes) -> bytes:
    """The first half."""
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    """The content with one bit of its middle flipped."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


def missing(data: bytes) -> None:
    """No file."""
    assert data


def of_other_columns(data: bytes) -> bytes:
    """The schema of a query by a string."""
    assert data

    def struct(*fields: tuple[str, str]) -> dict[str, Any]:
        columns = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields]
        return {"type": "struct", "fields": columns}

    return schema_v2(struct(("user", "string")), struct(("n", "long")))


CASES: dict[tuple[str, str], list[tuple[str, Damage, set[str]]]] = {
    ("windows", "hdfs"): [
        ("state/0/0/_metadata/schema", of_other_columns, {UNREADABLE, "RowPartitionError"}),
        ("state/0/0/_metadata/schema", missing, {NO_SCHEMA}),
        ("state/0/0/_metadata/schema", truncated, {NO_SCHEMA}),
    ],
    ("windows", "rocksdb"): [
        ("state/0/1/*.zip", truncated, {UNREADABLE}),
        ("state/0/1/*.zip", missing, {UNREADABLE}),
        ("state/0/1/SSTs/*.sst", truncated, {UNREADABLE}),
        ("state/0/1/SSTs/*.sst", flipped, {UNREADABLE}),
    ],
    ("windows", "changelog"): [
        ("state/0/1/*.changelog", flipped, {UNREADABLE}),
        ("state/0/1/*.changelog", missing, {UNREADABLE}),
    ],
    ("windows", "ids"): [
        ("state/0/1/*.changelog", missing, {UNREADABLE}),
        ("state/0/1/*.changelog", flipped, {UNREADABLE}),
    ],
    ("processor", "changelog"): [
        ("state/0/_stateSchema/default/*", missing, {NO_SCHEMA}),
        ("state/0/_stateSchema/default/*", truncated, {NO_SCHEMA}),
        ("state/0/_metadata/v2/*", truncated, {NO_SCHEMA}),
    ],
}


def refused(spark: SparkSession, location: Path) -> StateTransferError:
    """The error of an import that leaves the location as it is."""
    before = files_of(location, without_ckpt=True)
    with pytest.raises(StateTransferError) as failed:
        import_location(spark, str(location), force=True)
    assert files_of(location, without_ckpt=True) == before
    return failed.value


@pytest.mark.parametrize(("name", "began_with"), CASES)
def test_it_is_a_typed_error(name: str, began_with: str, spark: SparkSession, tmp_path: Path) -> None:
    if order(MINOR) < order(QUERIES[name].since):
        pytest.skip(f"Spark runs this query since {QUERIES[name].since}, this is {MINOR}")
    origin = stop_query(spark, tmp_path, name, began_with)
    outcomes = {}
    for number, (pattern, damage, _) in enumerate(CASES[name, began_with]):
        location = tmp_path / f"damaged-{number}"
        shutil.copytree(origin, location, ignore=shutil.ignore_patterns(".*.crc"))
        found = [path for path in location.glob(pattern) if path.is_file()]
        assert found, pattern
        for path in found:
            content = damage(path.read_bytes())
            path.unlink()
            if content is not None:
                path.write_bytes(content)
        outcomes[pattern, damage] = refused(spark, location).kind
    for pattern, damage, kinds in CASES[name, began_with]:
        assert outcomes[pattern, damage] in kinds, outcomes


@since("4.2", "row checksums")
@pytest.mark.parametrize("began_with", ["hdfs", "rocksdb"])
def test_rows_without_the_checksums_that_the_log_announces(
    began_with: str, spark: SparkSession, tmp_path: Path
) -> None:
    location = stop_query(spark, tmp_path, "windows", began_with)
    for path in (location / "offsets").iterdir():
        if path.name.isdecimal():
            version, metadata, *sources = path.read_text().split("\n")
            fields = json.loads(metadata)
            fields["conf"][ROW_CHECKSUM] = "true"
            path.write_text("\n".join([version, json.dumps(fields), *sources]))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    failure = refused(spark, location)
    assert failure.kind == UNREADABLE
    assert "STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED" in str(failure)
