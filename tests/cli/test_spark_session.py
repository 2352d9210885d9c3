"""The session of commands that need Spark."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from spark_ckpt.cli.spark_session import use_this_python


@pytest.mark.parametrize(
    ("master", "named", "python"),
    [
        ("local[*]", None, sys.executable),
        ("local[2]", "/opt/python3", "python3"),
        ("spark://host:7077", None, "python3"),
        ("yarn", None, "python3"),
    ],
)
def test_tasks_on_this_machine_run_in_this_python(
    master: str, named: str | None, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster, the path of this Python says nothing."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if named is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", named)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec="python3"))
    use_this_python(session)
    assert session.sparkContext.pythonExec == python
