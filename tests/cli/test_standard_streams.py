"""Output to a closed stream, to a pipe without a reader, and to a full disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.metadata import CheckpointMetadata, MasterState, dump
from tests.support.locations import make_location

COMMANDS = (["list"], ["list", "--json"], ["inspect"], ["list", "--help"])


def run(arguments: list[str], **streams: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spark_ckpt", *arguments]
    return subprocess.run(command, text=True, timeout=1500, check=False, **streams)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(make_location(tmp_path))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_pipe_without_a_reader_ends_the_program_quietly(command: list[str], location: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = run([*command, location], stdout=pipe, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", [["list"], ["inspect"], ["inspect", "--json"]], ids=" ".join)
def test_a_reader_that_stops_early_ends_the_program_quietly(command: list[str], tmp_path: Path) -> None:
    location = make_location(tmp_path)
    if command != ["list"]:  # more output than a pipe holds
        location = str(tmp_path / "_metadata")
        dump(CheckpointMetadata(1, tuple(MasterState(f"{n:0500d}", b"x", 1) for n in range(400))), location)
    with subprocess.Popen(
        [sys.executable, "-m", "spark_ckpt", *command, location], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout is not None and program.stderr is not None
        assert program.stdout.readline()
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(300) in (0, 1)  # 0 if the pipe held all output


def close_output() -> None:
    os.close(1)


def close_both() -> None:
    os.close(1)
    os.close(2)


@pytest.mark.parametrize("close", [close_output, close_both])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_standard_output_there_is_nothing_to_complain_of(
    command: list[str], close: Callable[[], None], location: str
) -> None:
    done = run([*command, location], stderr=subprocess.PIPE, preexec_fn=close)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize("command", [*COMMANDS, ["--version"]], ids=" ".join)
def test_a_full_disk_is_one_line(command: list[str], location: str) -> None:
    arguments = command if command == ["--version"] else [*command, location]
    with open("/dev/full", "wb") as full:
        done = run(arguments, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "cannot write standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "--json" in command or len(done.stderr.splitlines()) == 1
