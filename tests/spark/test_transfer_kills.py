"""SIGKILL of `spark-ckpt import` and `spark-ckpt export` while their Spark job reads and writes state.

The files of the last partition that an import reads are named pipes meanwhile, so its task waits: the job has written
the other partitions, and cannot end. An export looks at its files first, so the kill has to be faster than its job.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.migrate import export_location, import_location
from spark_ckpt.migrate.stopped_query import HDFS_PROVIDER, read_stopped_query
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.gc import collect_garbage
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.storage import resolve
from tests.migrate.queries import ALL, PROVIDERS, Rows, offer, run, stop_query
from tests.migrate.steps import files_of
from tests.support.invariants import assert_invariants
from tests.support.processes import PATIENCE, command_line, descendants, kill
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

OURS = {PROVIDER_KEY: PROVIDER_CLASS}

PARTITIONS = 24
"""Partitions of an export."""


@contextmanager
def unreadable(files: Sequence[Path]) -> Iterator[None]:
    """Replaces files by named pipes without a writer: who opens one waits."""
    contents = {path: path.read_bytes() for path in files}
    assert contents
    for path in files:
        path.unlink()
        os.mkfifo(path)
    yield
    for path, content in contents.items():
        path.unlink()
        path.write_bytes(content)


def kill_when(came: Callable[[], object], folder: Path, *arguments: object, python_only: bool = False) -> None:
    """Runs the command on one core until a condition holds; then kills it.

    Args:
        came: the condition.
        folder: for its scratch files and output.
        arguments: arguments of the command.
        python_only: whether to kill only the Python process, which its JVM has to notice.
    """
    folder.mkdir()
    log = folder / "output"
    program = [sys.executable, "-m", "spark_ckpt", *map(str, arguments), "--force", "--master", "local[1]"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*program, "--conf", f"spark.local.dir={folder}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        eventually(lambda: came() or process.poll() is not None, PATIENCE, lambda: log.read_text(errors="replace"))
        below = descendants(process.pid)
        assert came(), log.read_text(errors="replace")
        if python_only:
            assert any("java" in command_line(pid) for pid in below)
            process.kill()
            eventually(lambda: not any(map(command_line, below)), PATIENCE, "the JVM ends after its parent")
    finally:
        below = descendants(process.pid)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pid in below:
            kill(pid)
        process.wait(PATIENCE)


def bases(location: Path) -> list[Path]:
    """State files that an import has written."""
    return list((location / "ckpt" / "shared").glob("*"))


def state_of(location: Path, partition: int) -> list[Path]:
    """State files of a provider of Spark."""
    return [path for path in (location / "state" / "0" / str(partition)).iterdir() if path.is_file()]


@pytest.fixture
def stopped(spark: SparkSession, tmp_path: Path) -> Path:
    """The location of a query with Spark's default provider."""
    return stop_query(spark, tmp_path, "count", "hdfs")


def expected_of(spark: SparkSession, folder: Path, location: Path, conf: Mapping[str, str]) -> Rows:
    """Later batches of a query at a copy of its location, which stays as it is."""
    offer(folder, ALL)
    copy = folder / f"copy-{len(list(folder.glob('copy-*')))}"
    shutil.copytree(location, copy)
    rows = run(spark, "count", folder, copy, conf)
    assert sum(map(len, rows.values())) > 0
    return rows


@pytest.mark.parametrize("python_only", [False, pytest.param(True, marks=pytest.mark.long)], ids=["all", "python"])
def test_a_killed_import_in_place(python_only: bool, stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    before = files_of(stopped)
    expected = expected_of(spark, tmp_path, stopped, PROVIDERS["hdfs"])
    with unreadable(state_of(stopped, 2)):
        kill_when(lambda: len(bases(stopped)) == 2, tmp_path / "killed", "import", stopped, python_only=python_only)
    assert files_of(stopped, without_ckpt=True) == before
    assert read_stopped_query(resolve(str(stopped))).provider == HDFS_PROVIDER
    for conf in (PROVIDERS["hdfs"], OURS):  # the offset log decides
        assert expected_of(spark, tmp_path, stopped, conf) == expected
    left = set(bases(stopped))
    imported = import_location(spark, str(stopped), force=True)
    assert sum(store.rows or 0 for store in imported.stores) > 0
    collect_garbage(resolve(str(stopped)), grace_seconds=0)
    assert not left & set(bases(stopped))
    assert_invariants(stopped)
    assert run(spark, "count", tmp_path, stopped, OURS) == expected


@pytest.mark.long
def test_a_killed_import_into_a_new_location(stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    before, new = files_of(stopped), tmp_path / "new"
    expected = expected_of(spark, tmp_path, stopped, PROVIDERS["hdfs"])
    with unreadable(state_of(stopped, 2)):
        kill_when(lambda: len(bases(new)) == 2, tmp_path / "killed", "import", stopped, new)
    assert files_of(stopped) == before
    for conf in (OURS, PROVIDERS["hdfs"]):
        with pytest.raises(StreamingQueryException, match="an import into this location was interrupted"):
            run(spark, "count", tmp_path, new, conf)
    with pytest.raises(TargetNotEmptyError):
        import_location(spark, str(stopped), str(new), force=True)
    shutil.rmtree(new)
    import_location(spark, str(stopped), str(new), force=True)
    assert run(spark, "count", tmp_path, new, OURS) == expected
    assert run(spark, "count", tmp_path, stopped, PROVIDERS["hdfs"]) == expected


@pytest.mark.long
@pytest.mark.parametrize("goes_to", ["hdfs", "changelog"])
def test_a_killed_export(goes_to: str, stopped: Path, spark: SparkSession, tmp_path: Path) -> None:
    import_location(spark, str(stopped), force=True)
    rescale(resolve(str(stopped)), PARTITIONS, force=True)  # for more tasks
    state_format = "spark-hdfs" if goes_to == "hdfs" else "spark-rocksdb"
    before, new = files_of(stopped), tmp_path / "new"
    expected = expected_of(spark, tmp_path, stopped, OURS)

    def written() -> int:
        return sum(any(partition.glob("*.[sz]*")) for partition in (new / "state/0").glob("*"))

    for attempt in count():
        kill_when(written, tmp_path / f"killed-{attempt}", "export", stopped, new, "--format", state_format)
        if written() < PARTITIONS:
            break
        shutil.rmtree(new)  # the job was faster
    assert files_of(stopped) == before
    for conf in (PROVIDERS[goes_to], OURS):
        with pytest.raises(Exception, match=r"A spark-ckpt export|Unrecognized token 'A'"):
            run(spark, "count", tmp_path, new, conf)
    with pytest.raises(TargetNotEmptyError):
        export_location(spark, str(stopped), str(new), state_format)
    shutil.rmtree(new)
    export_location(spark, str(stopped), str(new), state_format)
    assert run(spark, "count", tmp_path, new, PROVIDERS[goes_to]) == expected
    assert run(spark, "count", tmp_path, stopped, OURS) == expected
