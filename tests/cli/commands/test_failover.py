from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.completed.errors import FencedError
from spark_ckpt.operations.mirror.errors import NotAMirrorError
from spark_ckpt.operations.mirror.following import LocationMirror
from spark_ckpt.storage import LocalStorage
from tests.support.cli import run
from tests.support.queries import Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5, whose mirror has the last one."""
    query = make_query(tmp_path / "q")
    assert run("mirror", query.storage.location, tmp_path / "m").status == 0
    return query


def test_the_drill(query: Query, tmp_path: Path) -> None:
    """The source is fenced and its last batch copied; the query continues on the mirror, and the mirror's process
    ends."""
    follower = LocationMirror.open(query.storage, LocalStorage(tmp_path / "m"))
    query.run(range(6, 8))
    done = run("failover", tmp_path / "m")
    assert done.status == 0, done.stderr
    assert "no driver there completes a batch any more (1 checkpoint copied since)" in done.stdout
    assert done.stdout.endswith("a query that starts here resumes with batch 8\n")
    with pytest.raises(FencedError):
        query.run(range(8, 9))
    with pytest.raises(FencedError):
        follower.promote()
    there = Query(LocalStorage(tmp_path / "m"))
    assert there.restart() == 8
    with pytest.raises(NotAMirrorError, match="a failover has made it the location of the query"):
        LocationMirror.open(query.storage, LocalStorage(tmp_path / "m"))


def test_a_source_that_is_gone(query: Query, tmp_path: Path) -> None:
    Path(query.storage.location).rename(tmp_path / "gone")
    refused = run("failover", tmp_path / "m")
    assert refused.status == 4
    assert "cannot be claimed, so a driver that still runs there is not fenced" in refused.stderr
    assert run("verify", tmp_path / "m").status == 0
    found = run("failover", tmp_path / "m", "--force", "--json").json
    assert (found["source_fenced"], found["caught_up"], found["batch_id"]) == (False, 0, 5)
    assert found["reason"]
    assert Query(LocalStorage(tmp_path / "m")).restart() == 6


def test_it_can_be_repeated_until_a_query_starts(query: Query, tmp_path: Path) -> None:
    assert run("failover", tmp_path / "m").status == 0
    refused = run("failover", tmp_path / "m")
    assert refused.status == 5
    assert "a failover has made it the location of the query" in refused.stderr


def test_the_source_by_another_name(query: Query, tmp_path: Path) -> None:
    Path(query.storage.location).rename(tmp_path / "moved")
    found = run("failover", tmp_path / "m", "--source", tmp_path / "moved", "--json").json
    assert found["source_fenced"]


def test_other_locations_are_refused(query: Query, tmp_path: Path) -> None:
    refused = run("failover", query.storage.location)
    assert refused.status == 5
    assert "it has no note of what it mirrors" in refused.stderr


def test_a_damaged_mirror_is_refused(query: Query, tmp_path: Path) -> None:
    for file in (tmp_path / "m" / "ckpt" / "shared").iterdir():
        file.write_bytes(b"")
    refused = run("failover", tmp_path / "m")
    assert refused.status == 1
    assert "is damaged" in refused.stderr
