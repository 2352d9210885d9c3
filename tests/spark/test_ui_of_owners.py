"""What the tab "Checkpoints" says of savepoints, of a restart, and of two drivers on one location (docs/ui.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.storage import LocalStorage
from tests.spark.jobs.contested_query import NAME
from tests.support.history_server import LOOPBACK
from tests.support.processes import DriverJob, find_below
from tests.support.waiting import eventually
from tests.support.web_pages import WebPage, read_page

UI = ["--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=0"]

RUN_ID, STATUS, COMPLETED, FAILED, RESTORED = 1, 2, 6, 7, 8
LATEST_COMPLETED, LATEST_FAILED, LATEST_RESTORE, LATEST_SAVEPOINT, OWNER = 9, 10, 11, 12, 13
"""Columns of the overview."""


class Contender:
    """A driver of the query, with its tab.

    Args:
        folder: for its files.
        location: location of the query, which other drivers share.
        options: options of the program.
    """

    def __init__(self, folder: Path, location: Path, *options: str) -> None:
        self._folder = folder
        arguments = ["--location", str(location), *options, *UI]
        self.job = DriverJob("contested_query.py", folder, arguments, environment=LOOPBACK)

    def await_file(self, name: str) -> None:
        assert self.job.await_((self._folder / name).exists), self.job.output()[-4000:]

    def allow(self, name: str) -> None:
        """Creates a file that the program waits for."""
        (self._folder / name).touch()

    @property
    def process(self) -> str:
        """Process of the driver's JVM, as pages name it."""
        java, *_ = find_below(self.job.pid, "org.apache.spark.deploy.SparkSubmit")
        return f"process {java} on "

    @property
    def address(self) -> str:
        return f"{(self._folder / 'ui').read_text()}/checkpoints/"

    def overview(self) -> WebPage:
        page = read_page(self.address)
        assert page is not None
        return page

    def row(self) -> list[str]:
        """The query's row of the overview."""
        (row,) = self.overview().tables["queries-table"]
        return row

    def await_in(self, column: int, text: str) -> list[str]:
        """The row, once a column has a text."""
        return eventually(
            lambda: row if text in (row := self.row())[column] else [], what=lambda: f"{text}: {self.row()}", poll=0.3
        )

    def stop(self) -> None:
        self.allow("stop")
        assert self.job.wait() == 0, self.job.output()[-4000:]


def restore_phases(history: WebPage) -> dict[int, str]:
    """Phase "Restore" of the operator, by batches of completed checkpoints."""
    found = {}
    for row in history.tables["history-table"]:
        if row[2] == "COMPLETED":
            details = read_page(history.links[row[0]])
            assert details is not None
            found[int(row[1])] = details.tables["spreads"][0][4]
    return found


@pytest.fixture
def contenders() -> Iterator[list[Contender]]:
    """Drivers that end with the test."""
    started: list[Contender] = []
    yield started
    for contender in started:
        contender.job.kill()


def test_a_second_driver_takes_over_and_finds_a_savepoint(tmp_path: Path, contenders: list[Contender]) -> None:
    location = tmp_path / "location"
    first = Contender(tmp_path / "first", location, "--hold")
    contenders.append(first)
    first.await_file("held")
    first.await_file("ui")
    (checkpoint,) = CheckpointLocation.open(str(location)).checkpoints()
    before = first.row()
    assert before[STATUS] == "RUNNING"
    assert (before[RESTORED], before[LATEST_RESTORE], before[LATEST_SAVEPOINT]) == ("0", "-", "-")
    assert before[OWNER].startswith(f"generation 1: {first.process}")
    assert "fenced" not in before[OWNER]
    taken = take_savepoint(LocalStorage(location), LocalStorage(tmp_path / "savepoint"))
    assert taken.checkpoint == checkpoint

    second = Contender(tmp_path / "second", location)
    contenders.append(second)
    second.await_file("ui")
    row = second.await_in(LATEST_SAVEPOINT, str(tmp_path / "savepoint"))
    assert row[LATEST_SAVEPOINT].startswith(f"{checkpoint.id}, batch 0 at ")
    assert row[RESTORED] == "1"
    assert row[LATEST_RESTORE].startswith(f"{checkpoint.id}, batch 0 at ")
    assert row[LATEST_RESTORE].endswith(f"/{checkpoint.metadata.path}")
    assert row[OWNER].startswith(f"generation 2: {second.process}")
    assert f"It has fenced generation 1: {first.process}" in row[OWNER]
    details = read_page(second.overview().links[NAME])
    assert details is not None
    assert f"{first.process}" in details.text
    assert f"run {before[RUN_ID]}" in details.text
    phases = restore_phases(details)
    assert phases.pop(1) != "-"
    assert set(phases.values()) <= {"-"}  # the next batches have the state in memory

    first.allow("go")
    lost = first.await_in(STATUS, "FENCED")
    assert lost[LATEST_FAILED].startswith("batch 1 at ")
    assert "fenced: " in lost[LATEST_FAILED]
    assert second.process in lost[LATEST_FAILED]
    assert (lost[COMPLETED], lost[FAILED]) == ("1", "1")
    first.stop()

    completed = int(second.row()[COMPLETED])
    second.await_in(COMPLETED, str(completed + 2))
    assert second.row()[STATUS] == "RUNNING"
    second.stop()


@pytest.mark.long
def test_a_savepoint_of_a_running_query_appears_within_a_minute(tmp_path: Path, contenders: list[Contender]) -> None:
    location = tmp_path / "location"
    driver = Contender(tmp_path / "driver", location)
    contenders.append(driver)
    driver.await_file("ui")
    assert driver.row()[LATEST_SAVEPOINT] == "-"
    for name in ("one", "two"):
        taken = take_savepoint(LocalStorage(location), LocalStorage(tmp_path / name))
        row = driver.await_in(LATEST_SAVEPOINT, str(tmp_path / name))
        assert row[LATEST_SAVEPOINT].startswith(f"{taken.checkpoint.id}, batch {taken.checkpoint.batch_id} at ")
    driver.stop()
