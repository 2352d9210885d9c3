from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_ckpt.cli.commands import mirror as command
from spark_ckpt.storage import LocalStorage
from tests.support.cli import run
from tests.support.queries import Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5."""
    return make_query(tmp_path / "q")


def test_once_and_again(query: Query, tmp_path: Path) -> None:
    done = run("mirror", query.storage.location, tmp_path / "m")
    assert done.status == 0
    assert done.stdout.startswith("batch 5, ")
    assert " s after its checkpoint: " in done.stdout
    assert run("mirror", query.storage.location, tmp_path / "m").stdout.endswith("batch 5 is there already\n")
    query.run(range(6, 7))
    found = run("mirror", query.storage.location, tmp_path / "m", "--json").json
    assert (found["source_id"], found["batch_id"], found["held"]) == (8, 6, False)
    assert found["bytes"] > 0
    assert run("verify", tmp_path / "m", "--all").status == 0
    assert [each["batch_id"] for each in run("list", tmp_path / "m", "--json").json["checkpoints"]] == [5, 6]


def test_it_follows_until_it_is_interrupted(query: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause lets the query run one batch, then none, then takes the source away for a moment; then comes Ctrl-C."""
    pauses: list[float] = []
    location, hidden = Path(query.storage.location), tmp_path / "hidden"

    class Pauses:
        def sleep(self, seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 1:
                query.run(range(6, 7))
            elif len(pauses) == 3:
                location.rename(hidden)
            elif len(pauses) == 5:
                hidden.rename(location)
                query.run(range(7, 8))
            elif len(pauses) == 6:
                raise KeyboardInterrupt

    monkeypatch.setattr(command, "SystemClock", Pauses)
    done = run("mirror", location, tmp_path / "m", "--follow", "--every", "300ms", "--json")
    assert done.status == 130
    assert [json.loads(line)["batch_id"] for line in done.stdout.splitlines()] == [5, 6, 7]
    assert set(pauses) == {0.3}


def test_what_cannot_be(query: Query, tmp_path: Path) -> None:
    location = query.storage.location
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert "is not empty" in run("mirror", location, tmp_path / "other").stderr
    assert run("mirror", location, tmp_path / "m", "--max-rate", "fast").status == 2
    assert run("mirror", location, tmp_path / "m", "--max-rate", "0").status == 2
    assert run("mirror", location, tmp_path / "m", "--every", "soon").status == 2
    assert run("mirror", location, tmp_path / "m").status == 0
    Query(LocalStorage(tmp_path / "m")).restart()
    refused = run("mirror", location, tmp_path / "m")
    assert refused.status == 5
    assert "a query has started there" in refused.stderr


def test_before_the_first_checkpoint(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path / "q"))
    refused = run("mirror", query.storage.location, tmp_path / "m")
    assert refused.status == 1
    assert "no checkpoint" in refused.stderr
