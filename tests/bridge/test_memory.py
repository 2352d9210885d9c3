"""Memory of the side process of a driver that runs many queries."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bridge import wire
from tests.bridge.remote_driver import RemoteDriver, run_batch
from tests.bridge.side_process import SideProcess
from tests.support.s3 import S3

QUERIES = 50
BATCHES = 4
LIMIT_MIB = 300


@pytest.mark.parametrize("where", ["local", pytest.param("s3", marks=pytest.mark.long)])
def test_fifty_queries_in_one_driver(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each query has its own location, stores and completed checkpoints; on S3, all share the connections."""
    root = str(tmp_path)
    if where == "s3":
        s3: S3 = request.getfixturevalue("s3")
        root = s3.url
    drivers = [RemoteDriver(f"{root}/q{i}", run_id=f"run-{i}", query_id=f"query-{i}") for i in range(QUERIES)]
    with ExitStack() as stack:
        side = stack.enter_context(SideProcess())
        assert side.ask(*wire.START)[1].kind == "ok"
        for version in range(1, BATCHES + 1):
            for driver in drivers:
                assert run_batch(side, driver, version)["completed_version"] == version
        memory = _resident_mib(side.pid)
        assert memory < LIMIT_MIB, f"{memory:.0f} MiB for {QUERIES} queries"
        assert side.end_input() == 0


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
