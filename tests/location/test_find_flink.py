"""Checkpoints of Flink among the locations of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.location.errors import CheckpointNotFoundError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.metadata import MetadataFormatError
from tests.docs.made_up import make_totals
from tests.flink.streams.corpus import flink_job
from tests.support.cli import run


def found(path: Path, checkpoint_id: int | None = None) -> int | None:
    checkpoint = CheckpointLocation.open(str(path)).find_of_flink(checkpoint_id)
    return None if checkpoint is None else checkpoint.metadata.checkpoint_id


def test_checkpoints_of_flink_are_found(tmp_path: Path) -> None:
    place = flink_job(tmp_path / "flink")
    assert (found(place), found(place, 1)) == (2, 1)
    assert (found(place / "chk-1"), found(place / "chk-1" / "_metadata")) == (1, 1)
    assert CheckpointLocation.open(str(place)).ids_of_flink() == [1, 2]
    for one in (place / "chk-1", place / "chk-1" / "_metadata"):
        assert CheckpointLocation.open(str(one)).ids_of_flink() == []
    with pytest.raises(CheckpointNotFoundError):
        found(place, 7)
    copied = tmp_path / "any-name"
    copied.write_bytes((place / "chk-2" / "_metadata").read_bytes())
    assert found(copied) == 2


def test_locations_of_spark_are_not_those_of_flink(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    make_totals(ours, "user")
    newest = max((ours / "ckpt").glob("chk-*"))
    assert run("savepoint", ours, tmp_path / "savepoint").status == 0
    for path in (ours, newest, newest / "_metadata", tmp_path / "savepoint", tmp_path / "savepoint" / "_metadata"):
        assert found(path) is None, path


@pytest.mark.parametrize("command", ["list", "state", "verify", "doctor"])
@pytest.mark.parametrize("above", ["job", "query/ckpt"])
def test_the_directory_of_a_checkpoint_without_metadata(command: str, above: str, tmp_path: Path) -> None:
    """The message is about the file that is missing, not about a location of ours."""
    directory = tmp_path / above / "chk-7"
    directory.mkdir(parents=True)
    (directory / "state").write_bytes(b"x")
    done = run(command, directory)
    text = done.stdout + done.stderr
    assert done.status != 0
    assert "_metadata" in text
    assert "ckpt/completed" not in text


def test_what_has_no_metadata_is_not_of_flink(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name in ("absent", "empty", "file"):
        assert found(tmp_path / name) is None
    (tmp_path / "_metadata").touch()
    with pytest.raises(MetadataFormatError):
        found(tmp_path)
