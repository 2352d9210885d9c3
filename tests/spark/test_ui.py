"""The tab "Checkpoints" of Spark's UI and of the History Server, over HTTP (docs/ui.md)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.spark.jobs.watched_queries import FAILING, STEADY
from tests.support.history_server import LOOPBACK, HistoryServer, event_log
from tests.support.processes import DriverJob
from tests.support.waiting import eventually
from tests.support.web_pages import WebPage, read_page

UI = ["--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=0"]
SERVLET = [
    "--conf",
    "spark.metrics.conf.*.sink.prometheusServlet.class=org.apache.spark.metrics.sink.PrometheusServlet",
    "--conf",
    "spark.metrics.conf.*.sink.prometheusServlet.path=/metrics/prometheus",
]
STEADY_LABEL = re.sub(r"[^a-zA-Z0-9]", "_", STEADY)
"""The hostile name in names of metrics."""


def start(folder: Path, *options: str) -> DriverJob:
    """Starts the driver; waits until the failing query has failed."""
    job = DriverJob("watched_queries.py", folder, options, environment=LOOPBACK)
    assert job.await_((folder / "ui").exists), job.output()[-4000:]
    return job


def stop(job: DriverJob, folder: Path) -> None:
    (folder / "stop").touch()
    assert job.wait() == 0, job.output()[-4000:]


def page_with(address: str, text: str) -> WebPage:
    """The page, once it has the text."""

    def look() -> WebPage | None:
        page = read_page(address)
        return page if page is not None and text in page.text else None

    page = eventually(look, what=f"{text!r} at {address}", poll=0.2)
    assert page is not None
    return page


def follow(page: WebPage, link: str) -> WebPage:
    found = read_page(page.links[link])
    assert found is not None
    return found


@pytest.fixture
def jobs() -> Iterator[list[DriverJob]]:
    """Drivers that end with the test."""
    started: list[DriverJob] = []
    yield started
    for job in started:
        job.kill()


def measured(address: str, query: str) -> dict[str, float]:
    """Metrics of a query, as Spark's servlet for Prometheus has them."""
    with urlopen(f"{address}/metrics/prometheus") as response:
        lines = response.read().decode().splitlines()
    named = re.compile(rf"metrics_.+_driver_sparkCkpt_{query}_checkpoints_(\w+)_(?:Count|Value)\{{.*\}} (\S+)")
    return {found[1]: float(found[2]) for line in lines if (found := named.fullmatch(line))}


@pytest.mark.core
def test_the_tab_and_the_metrics_of_a_query(tmp_path: Path, jobs: list[DriverJob]) -> None:
    """Both on every Spark: the UI's classes and its metrics system are not public."""
    folder = tmp_path / "driver"
    job = start(folder, *UI, *SERVLET)
    jobs.append(job)
    address = (folder / "ui").read_text()
    overview = page_with(f"{address}/checkpoints/", "query ended")
    row = next(row for row in overview.tables["queries-table"] if row[0] == FAILING)
    assert row[2:3] + row[4:9] == ["ENDED", "3", "0", "2", "1", "0"]
    history = follow(overview, FAILING).tables["history-table"]
    assert [row[1:4] for row in history][1:] == [["1", "COMPLETED", "3/3"], ["0", "COMPLETED", "3/3"]]
    assert read_page(follow(overview, FAILING).links["State"]) is not None
    steady = eventually(lambda: found if (found := measured(address, STEADY_LABEL)) else None)
    assert steady is not None
    assert steady["numberOfCompletedCheckpoints"] <= steady["totalNumberOfCheckpoints"]
    eventually(lambda: measured(address, STEADY_LABEL)["numberOfCompletedCheckpoints"] > 1)
    later = measured(address, STEADY_LABEL)
    assert (later["lastCheckpointRows"], later["generation"]) == (7, 1)
    assert later["numberOfFailedCheckpoints"] == 0
    stop(job, folder)


def test_a_running_application_and_its_event_log(tmp_path: Path, jobs: list[DriverJob]) -> None:
    """The History Server shows what the application showed."""
    logs, folder = tmp_path / "logs", tmp_path / "driver"
    job = start(folder, *UI, *event_log(logs))
    jobs.append(job)
    address = (folder / "ui").read_text()
    assert "127.0.0.1" in address or "localhost" in address

    overview = page_with(f"{address}/checkpoints/", "query ended")
    rows = {row[0]: row for row in overview.tables["queries-table"]}
    assert set(rows) == {STEADY, FAILING}
    assert rows[FAILING][2:3] + rows[FAILING][4:9] == ["ENDED", "3", "0", "2", "1", "0"]
    assert rows[STEADY][2] == "RUNNING"
    assert "batch 2" in rows[FAILING][10]

    query = follow(overview, FAILING)
    history = query.tables["history-table"]
    assert [row[1:4] for row in history][1:] == [["1", "COMPLETED", "3/3"], ["0", "COMPLETED", "3/3"]]
    assert history[0][1:3] == ["2", "FAILED"]
    assert history[0][-1].startswith("query ended")
    checkpoint = follow(query, history[1][0])
    assert sorted(row[2] for row in checkpoint.tables["subtasks-table"]) == ["0", "1", "2"]
    assert checkpoint.tables["operators"][0][:3] == ["0 dedupe", "default", "3/3"]
    spreads = checkpoint.tables["spreads"][0]
    assert spreads[4] == "-"  # a new query restores nothing
    assert all(re.fullmatch(r"\d+\.\d{3} ms( / \d+\.\d{3} ms){2}", cell) for cell in spreads[5:8]), spreads

    steady = follow(overview, STEADY)
    assert STEADY in steady.text
    page_with(steady.address, "COMPLETED")
    stop(job, folder)

    server = HistoryServer(logs, tmp_path)
    try:
        application = next(name for name in os.listdir(logs) if not name.startswith(".")).removeprefix("eventlog_v2_")
        later = page_with(f"{server.address}/history/{application}/checkpoints/", "query ended")
        assert {row[0]: row[2] for row in later.tables["queries-table"]} == {STEADY: "ENDED", FAILING: "ENDED"}
        assert next(row for row in later.tables["queries-table"] if row[0] == FAILING) == rows[FAILING]
        assert follow(later, FAILING).tables["history-table"] == history
        assert follow(follow(later, FAILING), history[1][0]).tables == checkpoint.tables
    finally:
        server.close()


@pytest.mark.long
def test_without_a_ui_the_driver_keeps_nothing_and_the_event_log_has_all(tmp_path: Path, jobs: list[DriverJob]) -> None:
    logs, folder = tmp_path / "logs", tmp_path / "driver"
    job = start(folder, *event_log(logs))
    jobs.append(job)
    assert (folder / "ui").read_text() == ""
    stop(job, folder)
    events = "".join(file.read_text() for file in logs.rglob("events_*"))
    assert events.count('"Event":"org.apache.spark.sql.ckpt.SparkListenerCheckpoint"') > 6
