"""What `write_state` refuses without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt import write_state
from spark_ckpt.evolution.errors import QueryPlanError


def test_a_session_of_spark_connect_is_refused(tmp_path: Path) -> None:
    query: Any = SimpleNamespace(sparkSession=SimpleNamespace(), isStreaming=True)
    with pytest.raises(QueryPlanError, match="Spark Connect; use a classic session"):
        write_state(query, tmp_path / "q", pa.table({"id": [1]}))
    assert not (tmp_path / "q").exists()
