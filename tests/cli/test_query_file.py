"""A query in a file of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from spark_ckpt.cli.query_file import QueryFile, load_query


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "beside_the_job.py").write_text("NAME = 'beside'\n")
    file = tmp_path / "job.py"
    file.write_text(
        "from beside_the_job import NAME\nvalue = 3\n"
        "def build(spark):\n    return NAME, spark\ndef plain():\n    return 1\n"
    )
    return file


def parsed(text: str) -> tuple[Path, str]:
    return QueryFile().convert(text, None, None)


def test_the_function_gets_the_session_if_it_takes_one(job: Path) -> None:
    session: Any = object()
    assert load_query(parsed(f"{job}:build"), session) == ("beside", session)
    assert load_query(parsed(f"{job}:plain"), session) == 1


@pytest.mark.parametrize("name", ["value", "missing"])
def test_what_is_no_function_is_named(job: Path, name: str) -> None:
    session: Any = object()
    with pytest.raises(click.UsageError, match=f"has no function {name}"):
        load_query(parsed(f"{job}:{name}"), session)


@pytest.mark.parametrize("text", ["job.py", "job.py:not a name"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parsed(text)


def test_a_file_that_does_not_exist_is_named() -> None:
    session: Any = object()
    with pytest.raises(click.UsageError, match=r"no file 'nowhere.py'"):
        load_query(parsed("nowhere.py:build"), session)
