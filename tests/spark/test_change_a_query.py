"""The page about changed queries: its queries run, and its commands convert their state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.pages import DOCS, command_lines
from tests.support.provider import ProviderUnderTest
from tests.support.query_page import QueryPage, use_session

PAGE = DOCS / "change-a-query.md"
COMMANDS = [line for line in command_lines(PAGE) if line.startswith(("spark-ckpt evolve", "spark-ckpt rollback"))]


@pytest.fixture(autouse=True)
def session(spark: SparkSession, provider: ProviderUnderTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has state that evolves")

    use_session(monkeypatch, spark)
    monkeypatch.chdir(tmp_path)


def orders(folder: Path, name: str, *rows: tuple[str, int]) -> None:
    (folder / "data" / "orders").mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"user": user, "item": "x", "amount": amount}) for user, amount in rows]
    (folder / "data" / "orders" / name).write_text("\n".join(lines))


def test_an_aggregate_more_and_the_way_back(spark: SparkSession, tmp_path: Path) -> None:
    orders(tmp_path, "1.json", ("ann", 5), ("bob", 7), ("ann", 1))
    page = QueryPage(spark, tmp_path, PAGE)
    page.drain("earlier", "counts")
    dry, real = [line for line in COMMANDS if "job.py:build" in line and "/checkpoints/counts" in line]
    assert "--dry-run" in dry
    page.enter(dry)
    printed = page.enter(real).stdout
    orders(tmp_path, "2.json", ("ann", 2), ("cyd", 3))
    page.drain("build", "counts")
    assert page.state("counts") == {"ann": (3, 2, 2), "bob": (1, None, None), "cyd": (1, 3, 3)}
    (rollback,) = [line for line in COMMANDS if "rollback" in line and "--id" in line]
    shown = printed.split("The way back: ")[1].split()
    assert page.here(rollback).rpartition(" ")[0] == " ".join(shown[:-1])
    page.typed(" ".join(shown), "--force")
    page.drain("earlier", "counts")
    assert page.state("counts") == {"ann": (3,), "bob": (1,), "cyd": (1,)}
