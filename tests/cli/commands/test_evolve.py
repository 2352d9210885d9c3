"""`spark-ckpt evolve`, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.cli.commands import evolve as command
from spark_ckpt.evolution import Evolution, EvolutionRefusedError, EvolvedSource, EvolvedStore
from tests.support.cli import run

STORES = (
    EvolvedStore(0, "stateStoreSave", "default", 0, 9, True, ("avg(w): begins without input",)),
    EvolvedStore(1, "dedupe", "default", None, 0, False, ("begins empty",)),
    EvolvedStore(2, "symmetricHashJoin", "default", 1, 1, False, ()),
)
SOURCES = (
    EvolvedSource(0, "json path=/in", 0, '{"logOffset":2}'),
    EvolvedSource(1, "rate", None, None),
    EvolvedSource(2, "kafka subscribe=t", None, '{"t":{"0":1}}'),
)
BACK = "The way back: spark-ckpt rollback /q --id 4"
DONE = Evolution("/q", None, STORES, ("left behind",), SOURCES, ("10 minutes becomes 2",), 9, 4, 5, 1000)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Mapping[str, Any]]:
    """Arguments of `evolve`, which returns `DONE`."""
    found: list[Mapping[str, Any]] = []

    @contextmanager
    def session(*_: object) -> Iterator[None]:
        yield None

    def evolve(query: object, location: str, **options: Any) -> Evolution:
        found.append({"query": query, "location": location, **options})
        return DONE

    (tmp_path / "job.py").write_text("def build():\n    return 'changed'\ndef earlier():\n    return 'earlier'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "spark_session", session)
    monkeypatch.setattr(command, "evolve", evolve)
    return found


def test_it_prints_what_becomes_of_each_state_and_source(calls: list[Mapping[str, Any]]) -> None:
    result = run("evolve", "/q", "--query", "job.py:build")
    assert result.status == 0, result.stderr
    assert result.stdout.splitlines() == [
        "/q: from checkpoint 4",
        "0/default (stateStoreSave): 9 rows of operator 0, rewritten",
        "    avg(w): begins without input",
        "1/default (dedupe): new",
        "    begins empty",
        "2/default (symmetricHashJoin): 1 row of operator 1, files kept",
        "left behind",
        "source 0 (json path=/in): continues where source 0 stands",
        "source 1 (rate): begins at its own start",
        'source 2 (kafka subscribe=t): begins at {"t":{"0":1}}',
        "watermark: 10 minutes becomes 2",
        f"new checkpoint 5, batches 8 and 9: 1,000 bytes written. Start the changed query. {BACK}",
    ]


def test_options_are_answers(calls: list[Mapping[str, Any]]) -> None:
    options = [
        *("--output-mode", "update", "--earlier-query", "job.py:earlier", "--dry-run"),
        *("--function", "avg(w)=", "--function", "max((v = 0))=max(v)", "--initial", "sum(v)=[5]"),
        *("--key", "k=key", "--value", "price=1.5", "--value", "name=none", "--operator", "1=", "--operator", "0=1"),
        *("--source", "0=1", "--source", "1=start", "--source", '2={"t":{"0":1}}', "--drop", "3"),
        *("--conf", "spark.sql.streaming.stateStore.ckpt.retained=3", "--conf", "spark.sql.shuffle.partitions=2"),
    ]
    assert run("evolve", "/q", "--query", "job.py:build", *options).status == 0
    (call,) = calls
    assert (call["query"], call["earlier_query"], call["output_mode"]) == ("changed", "earlier", "update")
    assert call["functions"] == {"avg(w)": None, "max((v = 0))": "max(v)"}
    assert call["initial"] == {"sum(v)": [5]}
    assert call["keys"] == {"k": "key"}
    assert call["values"] == {"price": 1.5, "name": "none"}
    assert call["operators"] == {1: None, 0: 1}
    assert call["sources"] == {0: 1, 1: None, 2: '{"t":{"0":1}}'}
    assert call["drop"] == (3,)
    assert call["settings"] == {"spark.sql.streaming.stateStore.ckpt.retained": "3"}
    assert call["dry_run"] is True


@pytest.mark.parametrize(
    "options",
    [
        ["--function", "avg(w)"],
        ["--source", "x=start"],
        ["--operator", "0=x"],
        ["--initial", "sum(v)=5"],
        ["--conf", "retained=3"],
    ],
)
def test_a_malformed_answer_is_a_usage_error(calls: list[Mapping[str, Any]], options: list[str]) -> None:
    assert run("evolve", "/q", "--query", "job.py:build", *options).status == 2
    assert calls == []


def test_a_refusal_has_every_reason(calls: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise EvolutionRefusedError("/q", ["one", "two", "one"])

    monkeypatch.setattr(command, "evolve", refuse)
    result = run("evolve", "/q", "--query", "job.py:build")
    assert (result.status, result.stdout) == (5, "")
    assert result.stderr.splitlines()[1:] == ["- one", "- two"]
