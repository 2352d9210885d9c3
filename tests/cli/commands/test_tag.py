from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.queries import Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5."""
    return make_query(tmp_path / "q")


def test_a_tag_in_place_of_an_id(query: Query, tmp_path: Path) -> None:
    location = query.storage.location
    done = run("tag", location, 5, "before-upgrade")
    assert done.status == 0
    assert done.stdout.startswith("checkpoint 5, batch 3, ")
    assert done.stdout.endswith(": tagged before-upgrade\n")
    query.run(range(6, 12))
    listed = run("list", location)
    assert listed.stdout.splitlines()[0].split()[-1] == "TAGS"
    assert listed.stdout.splitlines()[1].split()[-1] == "before-upgrade"
    checkpoints = run("list", location, "--json").json["checkpoints"]
    assert [(each["id"], each.get("tags")) for each in checkpoints] == [
        (5, ["before-upgrade"]),
        *((i, None) for i in (10, 11, 12, 13)),
    ]
    for command in ("inspect", "verify"):
        by_tag = run(command, location, "--id", "before-upgrade")
        assert by_tag.status == 0
        assert by_tag.stdout == run(command, location, "--id", 5).stdout
    assert run("savepoint", location, tmp_path / "s", "--id", "before-upgrade").status == 0
    assert run("list", location, "--sources", "--json").json["checkpoints"][0]["tags"] == ["before-upgrade"]


def test_a_time_in_place_of_an_id(query: Query) -> None:
    location = query.storage.location
    checkpoints = run("list", location, "--json").json["checkpoints"]
    then = checkpoints[1]["timestamp"]
    assert run("inspect", location, "--at", then, "--json").json["checkpoint_id"] == 5
    assert run("inspect", location, "--at", then.removesuffix("Z"), "--json").json["checkpoint_id"] == 5
    refused = run("inspect", location, "--at", "1969-01-01")
    assert refused.status == 1
    assert "no checkpoint there was complete at 1969-01-01T00:00:00.000Z: the oldest was completed at" in refused.stderr
    assert run("inspect", location, "--at", "yesterday").status == 2
    assert run("inspect", location, "--at", then, "--id", 5).status == 2


def test_a_tag_that_is_taken(query: Query) -> None:
    location = query.storage.location
    assert run("tag", location, 5, "a").status == 0
    refused = run("tag", location, 6, "a")
    assert refused.status == 5
    assert f"spark-ckpt untag {location} a" in refused.stderr
    done = run("untag", location, "a", "--json").json
    assert (done["tag"], done["id"]) == ("a", 5)
    assert run("tag", location, 6, "a").status == 0
    assert run("tag", location, "a", "b", "--json").json["id"] == 6
    assert run("diff", location, "b", 7).status != 2


def test_names_and_ids(query: Query) -> None:
    location = query.storage.location
    assert run("tag", location, 5, "17").status == 1
    assert run("tag", location, "5.1", "a").status == 2
    assert run("read", location, "--id", "no such").status == 2
    missing = run("read", location, "--id", "nothing")
    assert missing.status == 1
    assert "no tag 'nothing'; available: none" in missing.stderr
