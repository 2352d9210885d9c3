"""`spark-ckpt rescale`: its output, and distinct exit statuses for scripts."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path
from unittest.mock import patch

import fsspec
import pytest

from spark_ckpt.checkpoint import packing
from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import Owner
from spark_ckpt.location.rescale_request import RescaleAnswer, answer_request, read_request
from spark_ckpt.operations import running_rescale
from spark_ckpt.spark_files.logs import BatchLog
from spark_ckpt.storage import LocalStorage
from tests.support.cli import run
from tests.support.queries import make_query
from tests.support.stopped_query import StoppedQuery


def test_lines(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path, names=("stateStoreSave", "globalLimit"))
    shown = run("rescale", tmp_path, "--partitions", 6)
    assert shown.status == 0
    first, aggregate, limit, shared, last = shown.stdout.splitlines()
    assert first == f"{tmp_path} rescaled from 4 to 6 partitions"
    assert aggregate == "  stateStoreSave 0/default: 4 -> 6"
    assert limit == "  globalLimit 1/default: runs as one task"
    assert shared == (
        "partitions share key groups: the next start reads each block of state 3 times; with 4 or 8 partitions, once"
    )
    assert last.startswith(f"new checkpoint {query.record.id + 2}, batch 7, from checkpoint {query.record.id}: ")
    assert query.log.batches(BatchLog.COMMITS) == [6, 7]


def test_json(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    shown = run("rescale", tmp_path, "--partitions", 8, "--json").json
    assert (shown["before"], shown["after"], shown["checkpoint_id"]) == (4, 8, query.record.id + 2)
    assert [(store["name"], store["before"], store["after"]) for store in shown["stores"]] == [("stateStoreSave", 4, 8)]
    assert (shown["reads"], shown["read_once"]) == (1, [])


def test_a_dry_run(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    before = query.files()
    shown = run("rescale", tmp_path, "--partitions", 6, "--dry-run")
    assert shown.status == 0
    assert shown.stdout.splitlines()[0] == f"{tmp_path} would be rescaled from 4 to 6 partitions"
    assert "reads each block of state 3 times; with 4 or 8 partitions, once" in shown.stdout
    assert "written" not in shown.stdout
    assert query.files() == before
    dry = run("rescale", tmp_path, "--partitions", 6, "--dry-run", "--json").json
    assert (dry["reads"], dry["read_once"]) == (3, [4, 8])
    assert "reads each block" not in run("rescale", tmp_path, "--partitions", 8, "--dry-run").stdout


def test_any_place_that_fsspec_serves(tmp_path: Path) -> None:
    """Without directories, each partition gets a file, so that it appears in listings."""
    files = fsspec.filesystem("memory")
    root = f"/{uuid.uuid4().hex}"
    for name, data in StoppedQuery(tmp_path).files().items():
        files.pipe_file(f"{root}/{name}", data)
    assert run("rescale", f"memory:/{root}", "--partitions", 6).status == 0
    assert files.exists(f"{root}/commits/7")
    assert {name.rpartition("/")[2] for name in files.ls(f"{root}/state/0", detail=False)} >= {"4", "5"}


def test_what_cannot_be_done_has_a_status_of_its_own(tmp_path: Path) -> None:
    StoppedQuery(tmp_path)
    refused = run("rescale", tmp_path, "--partitions", 65)
    assert (refused.status, refused.stdout) == (5, "")
    assert "64 key groups" in refused.stderr
    assert run("rescale", tmp_path, "--partitions", 65, "--json").error["reason"] in refused.stderr
    assert run("rescale", tmp_path / "nowhere", "--partitions", 2).status == 1
    assert run("rescale", tmp_path, "--partitions", 0).status == 2
    assert run("rescale", tmp_path).status == 2


def test_a_number_that_readers_would_refuse_is_refused_with_numbers_that_work(tmp_path: Path) -> None:
    StoppedQuery(tmp_path)
    with patch.object(packing, "MAX_BYTES", 16 << 10):
        refused = run("rescale", tmp_path, "--partitions", 63, "--dry-run")
        assert (refused.status, refused.stdout) == (5, "")
        assert "work are 62 or 64" in " ".join(refused.stderr.split())


def test_a_driver_that_runs_has_a_status_of_its_own(tmp_path: Path) -> None:
    StoppedQuery(tmp_path, owner=Owner(socket.gethostname(), os.getpid(), "token", "query", "run"))
    refused = run("rescale", tmp_path, "--partitions", 8)
    assert (refused.status, refused.stdout) == (4, "")
    assert "--force" in refused.stderr
    assert run("rescale", tmp_path, "--partitions", 8, "--force").status == 0


def test_settings_of_the_query(tmp_path: Path) -> None:
    StoppedQuery(tmp_path)
    prefix = "spark.sql.streaming.stateStore.ckpt"
    wrong = run("rescale", tmp_path, "--partitions", 8, "--conf", f"{prefix}.store=none", "--json")
    assert (wrong.status, wrong.error["error"], wrong.error["key"]) == (1, "SettingError", f"{prefix}.store")
    in_the_way = run("rescale", tmp_path, "--partitions", 8, "--conf", f"{prefix}.store=standalone", "--json")
    assert (in_the_way.status, in_the_way.error["error"]) == (1, "StoreMismatchError")
    assert run("rescale", tmp_path, "--partitions", 8, "--conf", "key").status == 2


@pytest.mark.parametrize("command", [("rescale", "--partitions", 8), ("rollback", "--id", 3)])
@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.streaming.stateStor.ckpt.store",
        "spark.sql.streaming.statestore.ckpt.store",
        "spark.sql.streaming.stateStore.chkpt.store",
        "spark.sql.streaming.stateStore.ckpt.Store",
        "store",
        "spark.sql.shuffle.partitions",
    ],
)
def test_a_key_that_is_no_setting_of_ours_is_refused(tmp_path: Path, command: tuple[object, ...], key: str) -> None:
    """A command that ignored the key would bypass the fence of a query with its checkpoints in ZooKeeper."""
    StoppedQuery(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    name, *options = command
    refused = run(name, tmp_path, *options, "--conf", f"{key}=zookeeper", "--json")
    assert (refused.status, refused.error["error"], refused.error["key"]) == (1, "SettingError", key)
    assert sorted(tmp_path.rglob("*")) == before


def test_rows_of_shared_blocks_are_not_counted(tmp_path: Path) -> None:
    StoppedQuery(tmp_path)
    assert ", 40 rows" in run("verify", tmp_path).stdout
    run("rescale", tmp_path, "--partitions", 7)
    assert ", rows not counted" in run("verify", tmp_path).stdout


def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: RescaleAnswer) -> None:
    """Lets a driver answer requests."""

    class Answering(SystemClock):
        def sleep(self, seconds: float) -> None:
            storage = LocalStorage(tmp_path)
            request = read_request(storage)
            assert request is not None
            answer_request(storage, request, answer)

    monkeypatch.setattr(running_rescale, "SystemClock", Answering)


def test_a_running_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = StoppedQuery(tmp_path)
    before = query.files()
    answered(tmp_path, monkeypatch, RescaleAnswer(batch_id=9, before=4))
    shown = run("rescale", tmp_path, "--partitions", 8, "--running")
    assert (shown.status, shown.stderr) == (0, "")
    assert shown.stdout == f"{tmp_path} runs with 8 partitions from batch 9 on; 4 before\n"
    shown = run("rescale", tmp_path, "--partitions", 8, "--running", "--wait", "1m", "--json")
    assert {**shown.json, "waited_ms": 0} == {
        "format": 1,
        "location": str(tmp_path),
        "before": 4,
        "after": 8,
        "batch_id": 9,
        "waited_ms": 0,
    }
    assert query.files() == before


def test_a_running_query_with_that_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    StoppedQuery(tmp_path)
    answered(tmp_path, monkeypatch, RescaleAnswer(before=4))
    shown = run("rescale", tmp_path, "--partitions", 4, "--running")
    assert (shown.status, shown.stdout) == (0, f"{tmp_path} runs with 4 partitions already\n")


def test_a_running_query_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    StoppedQuery(tmp_path)
    answered(tmp_path, monkeypatch, RescaleAnswer(refused="the reason"))
    refused = run("rescale", tmp_path, "--partitions", 8, "--running", "--json")
    assert (refused.status, refused.stdout) == (5, "")
    assert (refused.error["error"], refused.error["reason"]) == ("RescaleRefusedError", "the reason")


def test_a_query_that_does_not_answer(tmp_path: Path) -> None:
    query = StoppedQuery(tmp_path)
    before = query.files()
    shown = run("rescale", tmp_path, "--partitions", 8, "--running", "--wait", "100ms", "--json")
    assert (shown.status, shown.stdout) == (1, "")
    assert (shown.error["error"], shown.error["partitions"]) == ("RescaleNotAnsweredError", 8)
    assert "The request was withdrawn" in shown.error["message"]
    assert query.files() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--running", "--force"), "--running excludes"),
        (("--running", "--dry-run"), "--running excludes"),
        (("--running", "--conf", "key=value"), "--running excludes"),
        (("--wait", "5s"), "--wait requires --running"),
        (("--running", "--wait", "soon"), "Invalid value for '--wait'"),
    ],
)
def test_options_that_exclude_each_other(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    StoppedQuery(tmp_path)
    wrong = run("rescale", tmp_path, "--partitions", 8, *options)
    assert (wrong.status, wrong.stdout) == (2, "")
    assert message in wrong.stderr


def test_where_no_query_runs(tmp_path: Path) -> None:
    savepoint = tmp_path / "savepoint"
    assert run("savepoint", make_query(tmp_path / "q").storage.location, savepoint).status == 0
    for place, error in ((savepoint, "SavepointLocationError"), (tmp_path / "nowhere", "LocationNotFoundError")):
        refused = run("rescale", place, "--partitions", 8, "--running", "--json")
        assert (refused.status, refused.error["error"]) == (1, error)
    assert not (savepoint / "ckpt" / "rescale.json").exists()
