"""Operations on a whole query work on S3 as on a local disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

import spark_ckpt
from tests.edit.hashed_state import counts
from tests.state.changes import KEY, VALUE, section
from tests.support.cli import run
from tests.support.queries import make_query
from tests.support.s3 import S3
from tests.support.state_location import StateLocation
from tests.support.stopped_query import OFFSETS, StoppedQuery
from tests.support.uploads import copy


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    make_query(tmp_path / "q")
    return tmp_path / "q"


@pytest.fixture
def remote(local: Path, s3: S3) -> str:
    """Copy of that location on S3."""
    place = f"{s3.url}/deep/q"
    copy(local, place)
    return place


def test_verify(local: Path, remote: str) -> None:
    assert run("verify", remote, "--all").stdout == run("verify", local, "--all").stdout
    assert run("verify", remote).status == 0


def test_a_savepoint_and_a_query_from_it(local: Path, remote: str, s3: S3) -> None:
    savepoint, restored = f"{s3.url}/saved/s", f"{s3.url}/new"
    done = run("savepoint", remote, savepoint, "--json").json
    planned = run("savepoint", local, local.parent / "s", "--json").json
    assert (done["id"], done["files"], done["bytes"]) == (7, planned["files"], planned["bytes"])
    assert run("restore", savepoint, restored).status == 0
    assert [each["id"] for each in run("list", restored, "--json").json["checkpoints"]] == [7]
    assert run("verify", restored).status == 0
    again = run("savepoint", remote, savepoint, "--json")
    assert again.error["error"] == "TargetNotEmptyError"


@pytest.mark.parametrize("command", ["savepoint", "restore"])
def test_a_target_in_a_bucket_that_does_not_exist(command: str, local: Path, s3: S3) -> None:
    done = run(command, local, "s3://no-such-bucket-of-ours/copy", "--json")
    assert done.status == 1
    assert "cannot write s3://no-such-bucket-of-ours/copy/" in done.error["message"]
    assert "no such bucket" in done.error["message"]


def test_rollback(local: Path, remote: str) -> None:
    moved = [run("rollback", place, "--id", 5, "--json").json for place in (remote, local)]
    assert moved[0]["checkpoints"] == moved[1]["checkpoints"] == [6, 7]
    assert sorted(moved[0]["moved"]) == sorted(moved[1]["moved"])
    assert [each["id"] for each in run("list", remote, "--json").json["checkpoints"]] == [4, 5]
    assert run("verify", remote, "--all").status == 0


@pytest.mark.parametrize("partitions", [pytest.param(8, marks=pytest.mark.long), 7])
def test_rescale(partitions: int, tmp_path: Path, s3: S3) -> None:
    StoppedQuery(tmp_path)
    copy(tmp_path, s3.url)
    done = [run("rescale", place, "--partitions", partitions, "--json").json for place in (s3.url, tmp_path)]
    assert done[0]["stores"] == done[1]["stores"]
    assert (done[0]["before"], done[0]["after"]) == (4, partitions)
    assert run("verify", s3.url).status == 0
    back = run("rescale", s3.url, "--partitions", 4, "--json").json
    assert (back["before"], back["after"]) == (partitions, 4)


def test_offsets(tmp_path: Path, s3: S3) -> None:
    query = StoppedQuery(tmp_path)
    query.log.add_offsets(5, OFFSETS)
    query.log.add_commit(5, query.commit)
    copy(tmp_path, s3.url)
    moved = [run("offsets", place, "--source", '0={"logOffset":1}', "--json").json for place in (s3.url, tmp_path)]
    assert moved[0]["changes"] == moved[1]["changes"] != []
    assert (moved[0]["batches"], moved[0]["batch_id"]) == (2, 8)
    assert run("verify", s3.url).status == 0
    assert run("rollback", s3.url, "--id", moved[0]["from_checkpoint"], "--force", "--json").json["batches"] == [7, 8]


def test_an_edit_and_an_erasure(tmp_path: Path, s3: S3) -> None:
    counts(tmp_path)
    copy(tmp_path, s3.url)
    row, keys = '{"key": {"user": "u3"}, "value": {"count": -1, "name": null}}', '{"user": "u4"}'
    for place in (s3.url, str(tmp_path)):
        assert run("edit", place, "--set", row, "--json").json["updated"] == 1
        erased = run("erase", place, "--keys", keys, "--purge", "--json").json
        assert (len(erased["dropped"]), sum(family["rows"] for family in erased["families"])) == (5, 1)
        assert run("verify", place, "--absent", keys).status == 0
        assert run("verify", place).status == 0
    key = pc.field("key", "user")
    rows = [spark_ckpt.read_state(place).to_arrow().sort_by("partition_id") for place in (s3.url, str(tmp_path))]
    found = [sorted(each.select(["key", "value"]).to_pylist(), key=str) for each in rows]
    assert found[0] == found[1]
    assert [each["value"]["count"] for each in found[0] if each["key"]["user"] == "u3"] == [-1]
    assert len(rows[0].filter(key == "u4")) == 0


def test_read(tmp_path: Path, s3: S3) -> None:
    location = StateLocation(tmp_path / "q", {"default": (KEY, VALUE)})
    location.commit(section({"a": 1, "b": 2}))
    location.commit(section({"a": None, "c": 3}), inline=False)
    copy(tmp_path / "q", s3.url)
    rows = spark_ckpt.read_state(s3.url).to_arrow()
    assert {row["key"]["user"]: row["value"]["n"] for row in rows.to_pylist()} == {"b": 2, "c": 3}
    assert rows.equals(spark_ckpt.read_state(location.path).to_arrow())
    assert run("read", s3.url).stdout == run("read", location.path).stdout
