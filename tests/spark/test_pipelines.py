"""Declarative Pipelines on a Spark Connect server: the page about them, from its first run to a full refresh."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_ckpt import read_state
from spark_ckpt.config.spark_settings import EXTENSIONS_CLASS
from tests.docs.pages import DOCS, blocks
from tests.support.cli import run
from tests.support.delta import DELTA_CONF, delta_jars, needs_delta
from tests.support.gateway import PYSPARK_JARS
from tests.support.invariants import assert_invariants
from tests.support.provider import ProviderUnderTest
from tests.support.spark_version import since

if TYPE_CHECKING:
    from tests.support.connect import ConnectServer

pytestmark = [pytest.mark.long, since("4.1", "Declarative Pipelines"), needs_delta]

PAGE = DOCS / "pipelines.md"
COMMAND = PYSPARK_JARS.parent / "bin" / "spark-pipelines"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: ProviderUnderTest) -> Iterator[ConnectServer]:
    if not provider.is_ours:
        pytest.skip("the server has the settings of this provider")
    pytest.importorskip("grpc", reason="a client of Spark Connect needs grpcio")
    from tests.support.connect import ConnectServer

    extensions = f"{EXTENSIONS_CLASS},{DELTA_CONF['spark.sql.extensions']}"
    settings = DELTA_CONF | {"spark.sql.extensions": extensions, "spark.sql.sources.default": "delta"}
    with ConnectServer(tmp_path_factory.mktemp("connect"), settings, jars=delta_jars()) as server:
        yield server


class Pipeline:
    """The pipeline of the page, in a folder."""

    def __init__(self, folder: Path, server: ConnectServer) -> None:
        self._folder = folder
        self._server = server
        self._storage = folder / "storage"
        self._input = folder / "input"
        for place in (self._input, folder / "definitions"):
            place.mkdir(parents=True)
        (spec,), (definition,) = blocks(PAGE, "yaml"), blocks(PAGE, "python")
        (folder / "spark-pipeline.yml").write_text(spec.replace("STORAGE", self._storage.as_uri()))
        (folder / "definitions" / "users.py").write_text(definition.replace("INPUT", str(self._input)))

    def add(self, *users: str) -> None:
        """Adds a file to the input."""
        number = len(list(self._input.iterdir()))
        (self._input / f"{number}.json").write_text("\n".join(json.dumps({"user": user}) for user in users))

    def run(self, *arguments: str) -> None:
        """Runs the pipeline until it has read its input."""
        done = subprocess.run(
            [str(COMMAND), "run", *arguments, "--remote", self._server.address],
            cwd=self._folder,
            env=os.environ | {"SPARK_HOME": str(PYSPARK_JARS.parent)},
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "Run is COMPLETED" in done.stdout

    def location(self, version: int) -> Path:
        """Checkpoint location of a version of the flow."""
        return self._storage / "_checkpoints" / "spark_catalog" / "default" / "users" / "users" / str(version)

    def seen(self, version: int) -> set[str]:
        """Users in the state of a version."""
        return {row["key"]["user"] for row in read_state(self.location(version)).to_arrow().to_pylist()}

    def table(self) -> list[str]:
        """Users in the table."""
        session = self._server.session()
        try:
            return sorted(row["user"] for row in session.table("users").collect())
        finally:
            session.stop()


def test_a_full_refresh_that_keeps_the_state(server: ConnectServer, tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path / "pipeline", server)
    pipeline.add("ada", "bob")
    pipeline.run()
    pipeline.add("ada", "cat")
    pipeline.run()
    assert pipeline.table() == ["ada", "bob", "cat"]
    assert pipeline.seen(0) == {"ada", "bob", "cat"}
    assert_invariants(pipeline.location(0))
    saved = run("savepoint", pipeline.location(0), tmp_path / "backup")
    assert saved.status == 0, saved.stderr

    for file in sorted((tmp_path / "pipeline" / "input").iterdir()):
        file.write_text("")  # the input of years ago is gone
    pipeline.run("--full-refresh", "users")
    assert pipeline.table() == []
    assert pipeline.seen(1) == set()

    restored = run("restore", tmp_path / "backup", pipeline.location(2))
    assert restored.status == 0, restored.stderr
    pipeline.add("ada", "dan")
    pipeline.run()
    assert pipeline.table() == ["dan"]
    assert pipeline.seen(2) == {"ada", "bob", "cat", "dan"}
    assert_invariants(pipeline.location(2))
