from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.figures import human_size
from tests.metadata.corpus import VECTORS
from tests.support.cli import run
from tests.support.locations import make_location

FLINK = VECTORS / "flink"
HEAP = FLINK / "f120-heap-p2-compressed"
INLINE = FLINK / "f120-heap-p3-inline"
SAVEPOINT = FLINK / "f120-savepoint-canonical-heap-p2"
FINISHED = FLINK / "f120-finished-p3"


def test_text(tmp_path: Path) -> None:
    done = run("convert", HEAP, tmp_path / "new", "--to-version", 3)
    assert done.status == 0
    size = human_size((tmp_path / "new" / "_metadata").stat().st_size)
    checkpoint = m.load(HEAP)
    assert done.stdout.splitlines() == [
        f"wrote {tmp_path}/new/_metadata: checkpoint {checkpoint.checkpoint_id}, metadata version 3, {size}",
        "requires Flink 1.15 or later: code 12 (KeyGroupsStateHandle)",
        "dropped properties, which version 3 cannot store: Checkpoint (FORWARD_BACKWARD)",
    ]
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("Warning: 4 paths, such as ")
    assert warning.endswith(f"copy these state files from {HEAP} to the same paths in {tmp_path}/new")
    assert m.load(tmp_path / "new") == m.convert(checkpoint, 3)


def test_json(tmp_path: Path) -> None:
    done = run("convert", SAVEPOINT, tmp_path / "new", "--to-version", 3, "--json")
    assert (done.status, done.stderr) == (0, "")
    shown = done.json
    assert (shown["source"], shown["target"]) == (f"{SAVEPOINT}/_metadata", f"{tmp_path}/new/_metadata")
    assert (shown["source_version"], shown["version"], shown["written"]) == (4, 3, True)
    assert shown["size"] == (tmp_path / "new" / "_metadata").stat().st_size
    assert shown["required_release"] == {"release": "1.13", "reasons": ["code 7 (KeyGroupsSavepointStateHandle)"]}
    assert shown["dropped_properties"]["checkpoint_type"]["format_type"] == "CANONICAL"
    assert (shown["relative"]["count"], len(shown["relative"]["examples"])) == (4, 3)
    assert len(shown["warnings"]) == 1


def test_properties_that_are_none_are_not_dropped(tmp_path: Path) -> None:
    m.dump(m.CheckpointMetadata(1), tmp_path / "_metadata", 4)
    done = run("convert", tmp_path, tmp_path / "_metadata.v3", "--to-version", 3)
    assert "dropped properties" not in done.stdout
    again = run("convert", tmp_path / "_metadata.v3", tmp_path / "_metadata.v2", "--to-version", 2, "--json").json
    assert (again["source_version"], again["dropped_properties"]) == (3, None)


def test_only_relative_paths_in_another_directory_are_worth_a_warning(tmp_path: Path) -> None:
    content = (HEAP / "_metadata").read_bytes()
    (tmp_path / "chk").mkdir()
    (tmp_path / "chk" / "_metadata").write_bytes(content)
    (tmp_path / "link").symlink_to("chk")
    for place in ("chk/_metadata.a", "link/_metadata.b"):
        assert run("convert", tmp_path / "chk", tmp_path / place, "--to-version", 3).stderr == ""
    assert run("convert", tmp_path / "chk", f"file:{tmp_path}/chk/_metadata.c", "--to-version", 3).stderr == ""
    assert run("convert", tmp_path / "chk", tmp_path / "other", "--to-version", 3).stderr != ""
    assert run("convert", INLINE, tmp_path / "inline", "--to-version", 3).stderr == ""


def test_a_checkpoint_of_ours(tmp_path: Path) -> None:
    location = make_location(tmp_path / "query")
    run("convert", location, tmp_path / "new", "--to-version", 2, "--id", 2)
    assert m.load(tmp_path / "new") == m.convert(m.load(f"{location}/ckpt/chk-2"), 2)
    run("convert", location, tmp_path / "newest", "--to-version", 2)
    assert m.load(tmp_path / "newest").checkpoint_id == 3


def test_a_dry_run(tmp_path: Path) -> None:
    would = run("convert", HEAP, tmp_path / "new", "--to-version", 3, "--dry-run")
    assert would.status == 0
    assert would.stdout.startswith(f"would write {tmp_path}/new/_metadata: ")
    assert would.stderr.startswith("Warning: ")
    assert run("convert", HEAP, tmp_path / "new", "--to-version", 3, "--dry-run", "--json").json["written"] is False
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "_metadata").touch()
    assert run("convert", HEAP, tmp_path, "--to-version", 3, "--dry-run").status == 1


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_loss_is_refused_with_all_that_would_be_lost(tmp_path: Path, options: tuple[str, ...]) -> None:
    refused = run("convert", FINISHED, tmp_path / "new", "--to-version", 2, "--json", *options)
    assert (refused.status, refused.error["error"]) == (1, "MetadataLossError")
    assert [(loss["what"], loss["subtask"]) for loss in refused.error["losses"]] == [
        ("finished subtasks", 0),
        ("finished subtasks", 2),
        ("a finished operator", None),
    ]
    assert list(tmp_path.iterdir()) == []
    assert "subtask 0, subtask 2" in run("convert", FINISHED, tmp_path / "new", "--to-version", 2).stderr


def test_the_source_is_no_target(tmp_path: Path) -> None:
    m.dump(m.CheckpointMetadata(1), tmp_path / "_metadata", 3)
    (tmp_path / "link").symlink_to(".")
    before = (tmp_path / "_metadata").read_bytes()
    for place in (tmp_path, tmp_path / "_metadata", tmp_path / "link", f"file://{tmp_path}"):
        refused = run("convert", tmp_path, place, "--to-version", 2, "--json")
        assert (refused.status, refused.error["error"]) == (1, "TargetExistsError")
    assert (tmp_path / "_metadata").read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [(HEAP, "new"), (HEAP, "new", "--to-version", 4), (HEAP, "--to-version", 3), (HEAP, "a", "b", "--to-version", 3)],
)
def test_wrong_usage_is_2(arguments: tuple[object, ...]) -> None:
    assert run("convert", *arguments).status == 2


def test_a_source_that_is_none(tmp_path: Path) -> None:
    missing = run("convert", tmp_path / "absent", tmp_path / "new", "--to-version", 3, "--json")
    assert (missing.status, missing.error["error"]) == (1, "LocationNotFoundError")
    assert list(tmp_path.iterdir()) == []


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    content = bytearray((FLINK / "f20-heap-p2-file" / "_metadata").read_bytes())
    content[7] = 7
    (tmp_path / "_metadata").write_bytes(content)
    newer = run("convert", tmp_path, tmp_path / "new", "--to-version", 3, "--json")
    assert (newer.status, newer.error["error"]) == (1, "UnsupportedMetadataVersionError")
    assert not (tmp_path / "new").exists()


def test_flink_2_0(tmp_path: Path) -> None:
    """Its operators lose their names, which only `inspect` uses."""
    source = FLINK / "f20-heap-p2-file"
    assert run("convert", source, tmp_path / "new", "--to-version", 3).status == 0
    before, after = (run("inspect", path, "--json").json["operator_states"] for path in (source, tmp_path / "new"))
    assert [operator["name"] for operator in before] == ["keyed", "Source: src"]
    assert [operator["name"] for operator in after] == [None, None]
    assert [operator["operator_id"] for operator in before] == [operator["operator_id"] for operator in after]
