from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt import metadata as m
from tests.metadata.corpus import VECTORS
from tests.metadata.handles import checkpoint
from tests.support.cli import run
from tests.support.locations import make_location

INCREMENTAL = VECTORS / "flink" / "f120-rocksdb-incr-p2-second"


def test_text(tmp_path: Path) -> None:
    done = run("relocate", "oracle://ckpt", "s3://bucket/flink", INCREMENTAL, tmp_path / "new")
    moved = m.relocate(m.load(INCREMENTAL), "oracle://ckpt", "s3://bucket/flink")
    assert m.load(tmp_path / "new") == moved.metadata
    assert moved.metadata.properties == m.load(INCREMENTAL).properties
    old, new = moved.rewritten[0]
    assert (done.status, done.stdout.splitlines()[1:]) == (
        0,
        [
            "requires Flink 1.16 or later: version 4",
            f"23 paths rewritten, such as {old} -> {new}",
            f"4 paths relative to the directory of the file, such as {moved.relative[0]}",
        ],
    )
    assert done.stdout.startswith(f"wrote {tmp_path}/new/_metadata: checkpoint 2, metadata version 4, ")
    assert done.stderr.startswith("Warning: 4 paths, such as ")


def test_json(tmp_path: Path) -> None:
    m.dump(checkpoint("/old/1", "/old/1", "/older/2", "/old/3", "/old/4", "s3://b/x"), tmp_path / "_metadata", 2)
    done = run("relocate", "file:/old", "hdfs://nn/new/", tmp_path, tmp_path / "new", "--json").json
    assert done["rewritten"] == {
        "count": 4,
        "examples": [{"old": f"/old/{name}", "new": f"hdfs://nn/new/{name}"} for name in (1, 3, 4)],
    }
    assert done["left_alone"] == {"count": 2, "examples": ["/older/2", "s3://b/x"]}
    assert done["relative"] == {"count": 0, "examples": []}
    assert (done["source_version"], done["version"], done["warnings"]) == (2, 2, [])
    left = run("relocate", "/old", "/new", tmp_path, tmp_path / "text").stdout
    assert "\n2 paths unchanged, such as /older/2\n" in left


def test_a_dry_run(tmp_path: Path) -> None:
    would = run("relocate", "oracle://ckpt", "/new", INCREMENTAL, tmp_path / "new", "--dry-run")
    assert (would.status, would.stdout.startswith("would write ")) == (0, True)
    assert list(tmp_path.iterdir()) == []


def test_a_prefix_that_does_not_occur(tmp_path: Path) -> None:
    refused = run("relocate", "oracle://ckp", "/new", INCREMENTAL, tmp_path / "new", "--json")
    assert (refused.status, refused.error["error"]) == (1, "NothingToRelocateError")
    (directory,) = refused.error["directories"]
    assert directory.startswith("oracle://ckpt/f120-rocksdb-incr-p2-second/")
    assert (refused.error["schemes"], refused.error["relative"]) == ([], 4)
    assert list(tmp_path.iterdir()) == []


def test_a_prefix_that_is_not_absolute(tmp_path: Path) -> None:
    refused = run("relocate", "old", "/new", INCREMENTAL, tmp_path / "new", "--json")
    assert (refused.status, refused.error["error"], refused.error["prefix"]) == (1, "PathPrefixError", "old")


def test_checkpoints_of_ours_move_as_they_are(tmp_path: Path) -> None:
    location = make_location(tmp_path / "query")
    refused = run("relocate", location, "/new", location, tmp_path / "new", "--id", 2)
    assert refused.status == 1
    assert "all paths are relative to the directory of _metadata" in refused.stderr


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "_metadata").write_bytes(b"old")
    refused = run("relocate", "oracle://ckpt", "/new", INCREMENTAL, tmp_path, "--json")
    assert (refused.status, refused.error["error"]) == (1, "TargetExistsError")
    assert (tmp_path / "_metadata").read_bytes() == b"old"


def test_names_in_a_file_cannot_control_the_terminal(tmp_path: Path) -> None:
    m.dump(checkpoint("/old/\x1b[2J", "/other/\x1b[1m"), tmp_path / "_metadata")
    shown = run("relocate", "/old", "/new", tmp_path, tmp_path / "new")
    assert shown.status == 0
    assert "\x1b" not in shown.stdout + shown.stderr
    assert "\\x1b[2J" in shown.stdout


@pytest.mark.parametrize("arguments", [("/a", "/b", "source"), ("/a", "/b", "source", "target", "--frobnicate")])
def test_wrong_usage_is_2(arguments: tuple[str, ...]) -> None:
    assert run("relocate", *arguments).status == 2
