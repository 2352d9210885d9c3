from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from spark_ckpt.flink.streams import state_files
from spark_ckpt.metadata.literal_urls import file_system_of_url


@pytest.mark.parametrize("name", ["a::b", "memory::b", "simplecache::memory:/x", "[1]", "a?b"])
def test_a_local_name_stands_for_itself(name: str, tmp_path: Path) -> None:
    for url in (f"{tmp_path}/{name}", f"file://{tmp_path}/{name}"):
        fs, path = file_system_of_url(url)
        assert isinstance(fs, LocalFileSystem)
        assert path == f"{tmp_path}/{name}"


def test_a_chain_in_a_local_path_is_a_name(tmp_path: Path) -> None:
    fs, path = file_system_of_url(f"{tmp_path}/simplecache::memory://x")
    assert isinstance(fs, LocalFileSystem)
    assert path.startswith(str(tmp_path))


@pytest.mark.parametrize("name", ["[1]", "*", "a?b", "{a,b}", "a%20b", "a b", "x#y?z=1"])
def test_a_name_in_a_url_stands_for_itself(name: str) -> None:
    fs, path = file_system_of_url(f"memory://top/{name}")
    assert isinstance(fs, MemoryFileSystem)
    assert path == f"/top/{name}"


def test_options_reach_the_file_system() -> None:
    fs, _ = file_system_of_url("memory://top", global_store=False, skip_instance_cache=True)
    fs.pipe_file("/only-here", b"x")
    assert not file_system_of_url("memory://top")[0].exists("/only-here")


def test_a_protocol_that_fsspec_does_not_serve_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing-like-it"):
        file_system_of_url("nothing-like-it://x")


def test_state_files_are_opened_without_chains() -> None:
    defaults = inspect.signature(state_files.StateFiles).parameters
    assert defaults["file_system_of"].default is file_system_of_url
