from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.location.find import CheckpointLocation, FoundCheckpoint
from spark_ckpt.storage import LocalStorage
from tests.cli.sources import AFTER, BEFORE, TABLE
from tests.cli.states import state_location
from tests.support.cli import run
from tests.support.locations import OWNER, make_location
from tests.support.queries import Query, make_query


def test_a_line_for_each_checkpoint(tmp_path: Path) -> None:
    listed = run("list", make_location(tmp_path))
    assert listed.status == 0
    header, first, second = listed.stdout.splitlines()
    assert header.split() == ["ID", "BATCH", "COMPLETED", "DURATION", "SIZE", "NEW", "STATE", "ROWS"]
    assert first.split() == ["2", "1", "2023-11-14T22:13:20.000Z", "1,234", "ms", "1.0", "KiB", "3.0", "MiB", "12"]
    assert second.split()[:3] == ["3", "2", "2023-11-14T22:13:21.000Z"]
    assert listed.stderr == ""


def test_json(tmp_path: Path) -> None:
    location = make_location(tmp_path)
    listed = run("list", location, "--json").json
    assert listed["location"] == location
    assert [checkpoint["id"] for checkpoint in listed["checkpoints"]] == [2, 3]
    first = listed["checkpoints"][0]
    assert first["timestamp"] == "2023-11-14T22:13:20.000Z"
    assert (first["batch_id"], first["version"], first["rows"], first["duration_ms"]) == (1, 2, 12, 1234)
    assert first["metadata"]["path"] == "chk-2/_metadata"
    assert first["owner"]["host"] == OWNER.host


def test_sources_of_each_checkpoint(tmp_path: Path) -> None:
    location = state_location(tmp_path, with_sources=True).path
    listed = run("list", location, "--sources")
    assert (listed.status, listed.stderr) == (0, "")
    lines = listed.stdout.splitlines()
    assert lines[:3] == run("list", location).stdout.splitlines()
    assert lines[3] == "source positions:"
    assert lines[4].split() == ["ID", "SOURCE", "KIND", "TOPIC", "PARTITION", "OFFSET"]
    assert [line.split() for line in lines[5:]][:9] == [
        ["2", "0", "kafka", "orders", "0", "17"],
        ["2", "0", "kafka", "orders", "1", "40"],
        ["2", "0", "kafka", "orders", "2", "5"],
        ["2", "0", "kafka", "returns", "0", "0"],
        ["2", "1", "delta", "-", "-", "table", f"{TABLE},", "version", "3,", "index", "-1"],
        ["2", "2", "file", "-", "-", "3"],
        ["2", "3", "rate-micro-batch", "-", "-", "20,", "timestamp", "1000", "ms"],
        ["2", "4", "partitions", "-", "0", "5"],
        ["2", "5", "number", "-", "-", "17"],
    ]
    assert [line.split() for line in lines[14:16]] == [
        ["2", "6", "unknown", "-", "-", '{"at":[1,2]}'],
        ["2", "7", "-", "-", "-", "-"],
    ]
    assert len(lines) == 5 + 2 * 11
    assert {line.split()[0] for line in lines[16:]} == {"3"}


def test_sources_as_json(tmp_path: Path) -> None:
    location = state_location(tmp_path, with_sources=True).path
    first, second = run("list", location, "--sources", "--json").json["checkpoints"]
    assert [source["name"] for source in first["sources"]] == [source.name for source in BEFORE]
    assert second["sources"][0] == {
        "name": "0",
        "kind": "kafka",
        "positions": [
            {"type": "kafka", "topic": "orders", "partition": partition, "offset": offset}
            for partition, offset in enumerate((29, 40, 6, 0))
        ],
    }
    assert second["sources"][-1] == {"name": AFTER[-1].name, "kind": None, "positions": []}
    assert "sources" not in run("list", location, "--json").json["checkpoints"][0]


def test_sources_of_a_savepoint(tmp_path: Path) -> None:
    make_query(tmp_path / "query")
    assert run("savepoint", tmp_path / "query", tmp_path / "savepoint").status == 0
    (newest,) = run("list", tmp_path / "savepoint", "--sources", "--json").json["checkpoints"]
    assert newest == run("list", tmp_path / "query", "--sources", "--json").json["checkpoints"][-1] | {
        "metadata": newest["metadata"]
    }
    assert newest["sources"][0]["positions"][0] == {"type": "kafka", "topic": "topic", "partition": 0, "offset": 25}


def test_sources_of_a_checkpoint_that_a_query_subsumes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = make_location(tmp_path)
    checkpoint_of = CheckpointLocation.checkpoint_of

    def subsume(place: CheckpointLocation, record: CheckpointRecord) -> FoundCheckpoint:
        if record.id == 2:
            for path in (tmp_path / "ckpt" / "completed" / f"{2:020d}.json", tmp_path / "ckpt" / "chk-2" / "_metadata"):
                path.unlink()
        return checkpoint_of(place, record)

    monkeypatch.setattr(CheckpointLocation, "checkpoint_of", subsume)
    listed = run("list", location, "--sources", "--json")
    assert [checkpoint["id"] for checkpoint in listed.json["checkpoints"]] == [3]


def test_sources_of_a_checkpoint_without_its_metadata(tmp_path: Path) -> None:
    location = make_location(tmp_path)
    (tmp_path / "ckpt" / "chk-2" / "_metadata").unlink()
    listed = run("list", location, "--sources", "--json")
    assert (listed.status, listed.error["error"]) == (1, StateFileNotFoundError.__name__)
    assert run("list", location).status == 0


def test_no_sources_before_the_first_checkpoint(tmp_path: Path) -> None:
    location = make_location(tmp_path, batches=0)
    assert run("list", location, "--sources").stdout == run("list", location).stdout
    assert run("list", location, "--sources", "--json").json["checkpoints"] == []


def test_forms_of_a_location(tmp_path: Path) -> None:
    location = make_location(tmp_path)
    expected = run("list", location).stdout
    assert run("list", f"file://{location}").stdout == expected
    assert run("list", f"file:{location}").stdout == expected
    assert run("list", f"{location}/").stdout == expected


def test_no_batch_has_completed_yet(tmp_path: Path) -> None:
    location = make_location(tmp_path, batches=0)
    assert run("list", location).stdout == f"{location}: no checkpoint has completed yet\n"
    assert run("list", location, "--json").json["checkpoints"] == []


def assert_none_yet(location: Path) -> None:
    listed = run("list", location)
    assert (listed.status, listed.stderr) == (0, "")
    assert listed.stdout == f"{location}: no checkpoint has completed yet\n"
    assert run("list", location, "--json").json["checkpoints"] == []
    for command in ("inspect", "history", "state"):
        assert run(command, location).stderr == f"Error: {location}: no checkpoint has completed yet\n"


def test_a_query_that_has_just_been_started(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path))
    assert_none_yet(tmp_path)
    query.start(0)
    assert_none_yet(tmp_path)
    (tmp_path / "ckpt" / "shared").mkdir(parents=True)
    assert_none_yet(tmp_path)


def test_all_checkpoints_are_gone(tmp_path: Path) -> None:
    make_query(tmp_path)
    shutil.rmtree(tmp_path / "ckpt")
    listed = run("list", tmp_path, "--json")
    assert (listed.status, listed.error["error"], listed.error["batch_id"]) == (1, "CheckpointsMissingError", 5)
    assert listed.error["path"] == str(tmp_path / "ckpt")
    for command in ("inspect", "history", "state", "savepoint"):
        target = [tmp_path / "new"] if command == "savepoint" else []
        assert run(command, tmp_path, *target, "--json").error["error"] == "CheckpointsMissingError"


@pytest.mark.parametrize("batches", [1, 2])
def test_a_query_with_another_state_store(tmp_path: Path, batches: int) -> None:
    make_query(tmp_path, batches, provider="org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    shutil.rmtree(tmp_path / "ckpt")
    assert "without checkpoints of spark-ckpt" in run("list", tmp_path).stderr


def test_a_query_without_state(tmp_path: Path) -> None:
    make_query(tmp_path)
    for name in ("ckpt", "state"):
        shutil.rmtree(tmp_path / name)
    assert "without checkpoints of spark-ckpt" in run("list", tmp_path).stderr


def test_nothing_is_written(tmp_path: Path) -> None:
    make_location(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    run("list", tmp_path)
    run("inspect", tmp_path)
    run("list", tmp_path / "absent")
    assert sorted(tmp_path.rglob("*")) == before


def test_missing_location(tmp_path: Path) -> None:
    listed = run("list", tmp_path / "absent")
    assert (listed.status, listed.stdout) == (1, "")
    assert listed.stderr == f"Error: {tmp_path / 'absent'}: no such file or directory\n"


def test_location_of_another_state_store(tmp_path: Path) -> None:
    for name in ("offsets", "commits", "state"):
        (tmp_path / name).mkdir()
    listed = run("list", tmp_path)
    assert listed.status == 1
    assert "without checkpoints of spark-ckpt" in listed.stderr


def test_any_other_place(tmp_path: Path) -> None:
    listed = run("list", tmp_path, "--json")
    assert (listed.status, listed.stdout) == (1, "")
    assert listed.error["error"] == "ForeignLocationError"
    assert listed.error["location"] == str(tmp_path)
    assert "no ckpt/completed" in listed.error["message"]
    (tmp_path / "file").touch()
    assert run("list", tmp_path / "file", "--json").error["error"] in ("ForeignLocationError", "StorageError")


def test_damaged_record(tmp_path: Path) -> None:
    make_location(tmp_path)
    record = tmp_path / "ckpt" / "completed" / f"{3:020d}.json"
    record.write_bytes(record.read_bytes().replace(b'"rows": 12', b'"rows": 13'))
    listed = run("list", tmp_path, "--json")
    assert listed.status == 1
    assert listed.error["error"] == "DamagedRecordError"
    assert listed.error["path"] == str(record)


def test_scheme_without_a_storage() -> None:
    listed = run("list", "gopher://host/checkpoint")
    assert listed.status == 1
    assert "gopher" in listed.stderr
