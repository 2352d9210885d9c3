"""The Python blocks of the pages run. Those of `ELSEWHERE` have tests of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from jsonschema import ValidationError
from pyarrow import parquet
from pyspark.sql import SparkSession

import spark_ckpt
from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY, RETAINED, STORE
from spark_ckpt.elasticity import BusyPolicy, ElasticDecision
from tests.docs.made_up import KEYS, make_totals
from tests.docs.pages import DOCS, PAGES, REPOSITORY, blocks
from tests.flink.importing.places import target, variables_of_the_vectors
from tests.flink.streams.corpus import job, lay_out
from tests.support.cli import run

ELSEWHERE = {
    "metadata.md": 5,
    "first-steps.md": 2,
    "real-time-mode.md": 1,
    "moving.md": 1,
    "change-a-query.md": 2,
    "start-from-history.md": 2,
    "testing-queries.md": 3,
    "pipelines.md": 1,
}
HERE = {
    "README.md": 1,
    "reading-state.md": 3,
    "high-availability.md": 1,
    "json.md": 1,
    "operations.md": 2,
    "flink-import.md": 1,
    "flink.md": 1,
    "notebooks.md": 2,
    "elastic.md": 2,
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    location = tmp_path / "checkpoints" / "orders"
    make_totals(location, "user")
    return location


def test_every_block_is_run_somewhere() -> None:
    numbers = {page.name: len(blocks(page, "python")) for page in PAGES}
    assert {name: number for name, number in numbers.items() if number} == ELSEWHERE | HERE


def run_blocks(page: Path, places: dict[str, object], **names: object) -> dict[str, Any]:
    """Runs the blocks of a page in order, with `places` substituted in them; returns the resulting names."""
    for block in blocks(page, "python"):
        for place, ours in places.items():
            block = block.replace(place, str(ours))
        exec(block, names)
    return names


def test_the_readme_configures_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts no session: the first steps do that."""
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: MagicMock())
    settings = run_blocks(REPOSITORY / "README.md", {})["builder"]._options
    assert settings[PROVIDER_KEY] == PROVIDER_CLASS
    assert settings[RETAINED.key] == "5"


def test_a_session_can_have_zookeeper() -> None:
    builder = SparkSession.builder
    run_blocks(DOCS / "high-availability.md", {}, spark_ckpt=spark_ckpt, builder=builder)
    assert builder._options[STORE.key] == "zookeeper"


def test_state_can_be_read(orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    savepoint = lay_out(job("f120-savepoint-canonical-heap-p2"), tmp_path / "flink").parent
    places: dict[str, object] = {
        "s3://bucket/checkpointLocation": orders,
        "s3://bucket/rows": tmp_path / "rows",
        "s3://bucket/savepoint-4f1e2a": savepoint,
    }
    scan = run_blocks(DOCS / "reading-state.md", places, location=str(orders))["scan"]
    assert scan.to_arrow().num_rows == KEYS
    assert parquet.read_table("rows.parquet").num_rows == KEYS
    assert len(list((tmp_path / "rows" / "_delta_log").iterdir())) == 1


def test_state_of_flink_can_be_imported(tmp_path: Path) -> None:
    location = target(tmp_path / "sums", *variables_of_the_vectors("long")).path
    savepoint = lay_out(job("f120-savepoint-canonical-heap-p2"), tmp_path / "flink").parent
    names = run_blocks(DOCS / "flink-import.md", {"flink/savepoint-4f1e2a": savepoint, "checkpoints/sums": location})
    assert names["imported"].checkpoint_id is not None


def test_the_schema_is_that_of_the_output(orders: Path) -> None:
    output = json.loads(run("inspect", orders, "--json").stdout)
    names = run_blocks(DOCS / "json.md", {}, output=output)
    with pytest.raises(ValidationError):
        names["Draft202012Validator"]({**names["schema"], "$ref": "#/$defs/list"}).validate(output)


def test_a_query_can_be_operated(orders: Path, tmp_path: Path) -> None:
    # The newest claim is now that of a command, so the location has no live owner.
    assert run("rollback", orders, "--id", 24, "--force").status == 0
    run_blocks(
        DOCS / "operations.md", {"/checkpoints": tmp_path / "checkpoints", "/backup": tmp_path / "backup", "400": 8}
    )
    assert (tmp_path / "backup" / "orders-2026-03-01" / "savepoint.json").is_file()
    assert run("list", tmp_path / "checkpoints" / "orders-2").status == 0
    assert "8 partitions" in run("state", orders).stdout


def test_a_cell_of_a_notebook(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: builder)
    names = run_blocks(DOCS / "notebooks.md", {}, query=orders)
    assert names["spark"]._options[PROVIDER_KEY] == PROVIDER_CLASS


def test_state_goes_to_flink(orders: Path, tmp_path: Path) -> None:
    places: dict[str, object] = {
        "/checkpoints/orders": orders,
        "/savepoints/orders": tmp_path / "savepoint",
    }
    exported = run_blocks(DOCS / "flink.md", places)["exported"]
    assert exported.states[0].rows == KEYS
    assert spark_ckpt.read_state(tmp_path / "savepoint").to_arrow().num_rows == KEYS


def test_a_query_is_followed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Starts no query: tests/spark/test_elastic.py does that."""
    made = ElasticDecision(0, 412, 8, 16, "3 batches in a row took 86 %", "dry")
    followed: list[object] = []

    def elastic(query: object, policy: BusyPolicy) -> MagicMock:
        followed.extend((query, policy))
        return MagicMock(decisions=[made])

    monkeypatch.setattr(spark_ckpt, "elastic", elastic, raising=False)
    names = run_blocks(DOCS / "elastic.md", {}, query="query")
    assert followed == ["query", names["policy"]]
    assert capsys.readouterr().out == "batch 412: 8 -> 16 partitions, dry: 3 batches in a row took 86 %\n"
