"""`spark-ckpt offsets`: its output, and distinct exit statuses for scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from spark_ckpt.cli.end_offsets import EARLIEST, LATEST
from tests.support.cli import run
from tests.support.stopped_query import OFFSETS, StoppedQuery

BACK = '0={"logOffset":1}'


def test_the_positions_are_shown(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    shown = run("offsets", tmp_path)
    assert shown.status == 0
    first, second, *table = shown.stdout.splitlines()
    assert first == f"{tmp_path}: checkpoint {query.record.id}, batch 6"
    assert second == "source positions:"
    assert any(line.split()[-5:] == ["0", "file", "-", "-", "3"] for line in table)
    json = run("offsets", tmp_path, "--json").json
    assert (json["checkpoint_id"], json["batch_id"]) == (query.record.id, 6)
    assert [source["positions"] for source in json["sources"]] == [[{"type": "file", "log_offset": 3}], []]


def test_they_are_moved(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    before = query.files()
    dry = run("offsets", tmp_path, "--source", BACK, "--dry-run")
    assert dry.status == 0
    assert dry.stdout.splitlines()[0] == f"{tmp_path}: 1 source would move"
    assert query.files() == before
    shown = run("offsets", tmp_path, "--source", BACK)
    assert shown.status == 0
    assert shown.stdout.splitlines()[0] == f"{tmp_path}: 1 source moved"
    assert "batches 7 and 8, from checkpoint" in shown.stdout
    assert query.log.offsets(8).offsets == {**OFFSETS.offsets, "0": '{"logOffset":1}'}
    json = run("offsets", tmp_path, "--source", '0={"logOffset":2}', "--json").json
    assert json["batches"] == 1
    assert [(change["before"]["log_offset"], change["after"]["log_offset"]) for change in json["changes"]] == [(1, 2)]


@pytest.mark.parametrize(
    ("text", "at_ms"), [("earliest", EARLIEST), ("latest", LATEST), ("2026-01-31T12:00:00Z", 1769860800000)]
)
def test_kafka_is_asked_for_a_time(tmp_path: Path, text: str, at_ms: int) -> None:
    query = StoppedQuery(tmp_path, offsets=replace(OFFSETS, offsets={"0": '{"t":{"0":5,"1":7}}', "1": None}))
    with patch("spark_ckpt.cli.commands.offsets.read_offsets_at", return_value={("t", 1): 4, ("t", 0): 3}) as asked:
        shown = run("offsets", tmp_path, "--to", text, "--kafka", "broker:9092")
    assert shown.status == 0, shown.stderr
    assert asked.call_args.args[0] == "broker:9092"
    assert asked.call_args.args[2] == at_ms
    assert query.log.offsets(8).offsets["0"] == '{"t":{"0":3,"1":4}}'


def test_what_cannot_be_done_has_a_status_of_its_own(tmp_path: Path) -> None:
    StoppedQuery(tmp_path)
    refused = run("offsets", tmp_path, "--source", '0={"logOffset":9}')
    assert (refused.status, refused.stdout) == (5, "")
    assert "entries 0 to 3" in refused.stderr
    assert run("offsets", tmp_path, "--source", '0={"logOffset":9}', "--json").error["reason"] in refused.stderr
    assert run("offsets", tmp_path / "nowhere").status == 1
    for options in (
        ("--source", "0"),
        ("--to", "yesterday", "--kafka", "b:1"),
        ("--to", "latest"),
        ("--kafka", "b:1"),
        ("--to", "latest", "--kafka", "b:1"),
        ("--source", BACK, "--lag", "b:1"),
    ):
        assert run("offsets", tmp_path, *options).status == 2, options
