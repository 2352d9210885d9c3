"""`spark-ckpt import-flink`: its output, and distinct exit statuses for scripts."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from spark_ckpt.completed import Owner
from tests.flink.importing.places import files_of, target, variables_of_the_vectors
from tests.flink.streams.corpus import job, lay_out
from tests.support import locations
from tests.support.cli import run
from tests.support.state_location import schema

OPERATOR = "e7beec23fd9f6ed5e1b8395129d43728"


@pytest.fixture
def savepoint(tmp_path: Path) -> str:
    return str(lay_out(job("f120-savepoint-canonical-heap-p2"), tmp_path / "flink").parent)


def query(directory: Path) -> str:
    return target(directory, *variables_of_the_vectors("long")).path


def test_lines(savepoint: str, tmp_path: Path) -> None:
    location = query(tmp_path / "query")
    shown = run("import-flink", savepoint, location)
    assert shown.status == 0
    lines = shown.stdout.splitlines()
    assert lines[0] == f"{location}: state of {savepoint} imported"
    assert f"  {OPERATOR}/sum -> 0/sum (value, 10 rows)" in lines
    assert "    value int64 -> value.value int64" in lines
    assert f"  {OPERATOR}/_timer_state/event_user-timers -> 0/eventTimers (event-time timers, 60 rows)" in lines
    assert lines[-2].startswith("  operator state, not imported: ")
    assert lines[-1].startswith("new checkpoint 4, batch 1: ")
    assert run("verify", location, "--all").status == 0
    assert run("read", location, "--variable", "sum").stdout.splitlines()[-1] == "10 rows"


def test_json(savepoint: str, tmp_path: Path) -> None:
    location = query(tmp_path / "query")
    arguments = ("--ignore", "map", "--state", f"{OPERATOR}/sum=0/sum")
    shown = run("import-flink", savepoint, location, *arguments, "--json").json
    assert (shown["source"], shown["location"], shown["dry_run"]) == (savepoint, location, False)
    assert {state["spark"]: state["rows"] for state in shown["states"]}["0/list"] == 60
    assert shown["ignored"] == [f"{OPERATOR}/map"]
    assert shown["empty"] == ["0/map"]
    assert shown["starting_offsets"] is None


def test_a_dry_run(savepoint: str, tmp_path: Path) -> None:
    location = query(tmp_path / "query")
    before = files_of(Path(location))
    shown = run("import-flink", savepoint, location, "--dry-run")
    assert shown.status == 0
    assert shown.stdout.splitlines()[0].endswith("would be imported")
    assert "new checkpoint" not in shown.stdout
    assert files_of(Path(location)) == before


def test_what_cannot_be_done_has_a_status_of_its_own(savepoint: str, tmp_path: Path) -> None:
    families, kinds = variables_of_the_vectors("long")
    location = target(tmp_path / "query", families | {"sum": (schema(key="long"), schema(value="double"))}, kinds).path
    refused = run("import-flink", savepoint, location)
    assert (refused.status, refused.stdout) == (5, "")
    assert "int64 does not fit the query's double" in refused.stderr
    error = run("import-flink", savepoint, location, "--json").error
    assert (error["error"], error["column"]) == ("FlinkTypeError", "value")
    assert run("import-flink", location, location).status == 5
    assert run("import-flink", savepoint, location, "--ignore", "sums").status == 5
    assert run("import-flink", tmp_path / "nowhere", location).status == 1
    assert run("import-flink", savepoint, tmp_path / "nowhere").status == 1


@pytest.mark.parametrize(
    "arguments", [("--state", "sum"), ("--key-order", "=f0"), ("--state", "a=b", "--state", "a=c"), ("--map", "x")]
)
def test_malformed_arguments(arguments: tuple[str, ...], savepoint: str, tmp_path: Path) -> None:
    assert run("import-flink", savepoint, query(tmp_path / "query"), *arguments).status == 2


def test_a_driver_that_runs_has_a_status_of_its_own(
    savepoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(socket.gethostname(), os.getpid(), "token", "query", "run")
    monkeypatch.setattr(locations.LocationBuilder.__init__, "__defaults__", (owner,))
    location = query(tmp_path / "query")
    refused = run("import-flink", savepoint, location)
    assert (refused.status, refused.stdout) == (4, "")
    assert run("import-flink", savepoint, location, "--force").status == 0
