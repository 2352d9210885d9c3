"""Shell completion, which click makes from the commands (docs/operations.md)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_ckpt.cli.command_table import COMMANDS
from spark_ckpt.cli.main import main

PROGRAM = "spark-ckpt"


def completed(*words: str) -> list[tuple[str, str]]:
    """Type and value of each completion of the last word, as bash asks for it."""
    environment = {
        "_SPARK_CKPT_COMPLETE": "bash_complete",
        "COMP_WORDS": shlex.join([PROGRAM, *words]),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner().invoke(main, [], prog_name=PROGRAM, env=environment)
    assert (result.exit_code, result.stderr) == (0, "")
    pairs = (line.partition(",") for line in result.stdout.splitlines() if line)
    return [(kind, value) for kind, _, value in pairs]


def test_commands() -> None:
    assert completed("") == [("plain", name) for name in sorted(COMMANDS)]
    assert completed("re") == [("plain", name) for name in ("read", "relocate", "rescale", "restore")]
    assert completed("frob") == []


def test_options() -> None:
    assert completed("doctor", "/x", "--") == [("plain", option) for option in ("--all", "--probe", "--json", "--help")]
    assert completed("list", "/x", "--wa") == [("plain", "--watch")]


@pytest.mark.parametrize("words", [("doctor", "/da"), ("savepoint", "/data", "/ba"), ("import", "s3://b/q", "/n")])
def test_paths_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert completed(*words) == [("file", words[-1])]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(shell: str) -> None:
    result = CliRunner().invoke(main, [], prog_name=PROGRAM, env={"_SPARK_CKPT_COMPLETE": f"{shell}_source"})
    assert result.exit_code == 0
    assert f"_SPARK_CKPT_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_in_bash(tmp_path: Path) -> None:
    program = tmp_path / PROGRAM
    program.write_text(
        f"#!{sys.executable}\nfrom spark_ckpt.cli.main import main\nmain(prog_name={PROGRAM!r})\n", encoding="utf-8"
    )
    program.chmod(0o755)
    script = """
        eval "$(_SPARK_CKPT_COMPLETE=bash_source spark-ckpt)"
        COMP_WORDS=(spark-ckpt "$@") COMP_CWORD=$#
        _spark_ckpt_completion spark-ckpt
        echo "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        ["bash", "-c", script, "bash", "inspe"], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("inspect\n", "")
