"""Validation of paths read from files; `CheckpointPathsSuite` tests the jar on the same table."""

from __future__ import annotations

import json
import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.storage.base import checked_name
from spark_ckpt.storage.errors import PathEscapeError
from spark_ckpt.storage.paths import is_metadata_path, is_state_path, state_path

TABLE = json.loads(Path(__file__).with_name("paths.json").read_text())

PIECES = ["..", ".", "/", "//", "\\", ":", "%2f", "%2e", "http://h", "\0", "\n", "x"]
PIECES += ["shared", "chk-1", "-2", "_metadata"]
paths = st.one_of(
    st.text(max_size=40),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=2)), max_size=12).map("".join),
    st.tuples(st.sampled_from(["../shared/", "chk-", "chk-1/"]), st.text(max_size=10)).map("".join),
)


@pytest.mark.parametrize("path", TABLE["state"]["good"])
def test_state_files_of_ours_are_read(path: str) -> None:
    assert f"../{state_path(path, 'ckpt/shared')}" == path


@pytest.mark.parametrize("path", TABLE["state"]["bad"])
def test_other_state_files_are_refused(path: str) -> None:
    with pytest.raises(PathEscapeError, match="ckpt/shared"):
        state_path(path, "ckpt/shared")


@pytest.mark.parametrize("path", TABLE["metadata"]["good"])
def test_metadata_files_of_ours_are_read(path: str) -> None:
    assert is_metadata_path(path)


@pytest.mark.parametrize("path", TABLE["metadata"]["bad"])
def test_other_metadata_files_are_refused(path: str) -> None:
    assert not is_metadata_path(path)


def stays_inside(path: str, directory: str) -> bool:
    """True if every reader, this package or Hadoop, resolves the relative path inside `directory`."""
    plain = path.isascii() and path.isprintable() and not set(path) & set("\\:%?*#[]{}~ ")
    return plain and checked_name(path, "") == path == posixpath.normpath(path) and path.startswith(directory)


@given(paths)
def test_what_is_taken_for_a_state_file_lies_inside(path: str) -> None:
    if is_state_path(path):
        assert stays_inside(path, "shared/")
    try:
        found = state_path(path, "")
    except PathEscapeError:
        return
    assert path == f"../{found}"
    assert stays_inside(found, "shared/")


@given(paths)
def test_what_is_taken_for_metadata_lies_inside(path: str) -> None:
    if is_metadata_path(path):
        assert stays_inside(path, "")
        assert posixpath.basename(path) == "_metadata"
