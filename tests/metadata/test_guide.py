"""The examples of the guide work."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from spark_ckpt import metadata
from spark_ckpt.metadata.codes import code_of
from tests.metadata.corpus import VECTORS
from tests.metadata.examples import KEYED, OPERATOR, STREAMS

GUIDE = (Path(__file__).parents[2] / "docs" / "metadata.md").read_text()


def test_its_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (files,) = (VECTORS / "flink" / "f110-heap-p2-file" / "checkpoints").glob("*/chk-2")
    shutil.copytree(files, tmp_path / "chk-17")
    read = metadata.load(VECTORS / "flink" / "f110-heap-p2-file")
    written_to = f"oracle://ckpt/f110-heap-p2-file/checkpoints/{files.parent.name}/chk-2"
    here = metadata.relocate(read, written_to, str(tmp_path / "chk-17")).metadata
    metadata.dump(here, tmp_path / "chk-17" / "_metadata", 2)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(block.replace("hdfs://namenode/flink", str(tmp_path)), names)
    assert metadata.load(tmp_path / "copy").operator_states == here.operator_states
    assert "s3://bucket/flink" in repr(metadata.load(tmp_path / "moved"))
    assert len(capsys.readouterr().out.splitlines()) > 10


def test_it_names_every_kind_of_handle() -> None:
    for handle in (*KEYED.values(), *OPERATOR.values(), *STREAMS.values()):
        if code_of(handle):
            assert f"`{type(handle).__name__}`" in GUIDE
