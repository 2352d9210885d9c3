"""The tab "Checkpoints" in a real browser, of a running application and in the History Server (docs/ui.md).

Pictures of the pages go to the folder that the environment variable SPARK_CKPT_TEST_PICTURES names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_ckpt.config import PREFIX, SETTINGS
from tests.spark.jobs.browsed_queries import PARTITIONS, WAITING, WIDE
from tests.spark.jobs.watched_queries import FAILING, STEADY
from tests.support.browser import Browser
from tests.support.history_server import LOOPBACK, HistoryServer, event_log
from tests.support.processes import DriverJob
from tests.support.waiting import eventually

UI = ["--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=0"]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    folder = tmp_path / "browser"
    folder.mkdir()
    browser = Browser(folder)
    yield browser
    browser.close()


@pytest.fixture
def job(browser: Browser, tmp_path: Path) -> Iterator[DriverJob]:  # after the browser, whose absence skips the test
    job = DriverJob(
        "browsed_queries.py", tmp_path / "driver", [*UI, *event_log(tmp_path / "logs")], environment=LOOPBACK
    )
    yield job
    job.kill()


def take_picture(browser: Browser, name: str) -> None:
    if folder := os.environ.get("SPARK_CKPT_TEST_PICTURES"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.screenshot(Path(folder) / f"{name}.png")


class Tab:
    """The tab of one application.

    Args:
        browser: shows it.
        address: address of its overview.
        name: for its pictures.
    """

    def __init__(self, browser: Browser, address: str, name: str) -> None:
        self.browser, self.address, self.name = browser, address, name

    def open_until(self, condition: Callable[[], object]) -> None:
        """Opens the overview again until it is as expected."""

        def look() -> bool:
            self.browser.open(self.address)
            return bool(condition())

        eventually(look, what=lambda: self.browser.text()[-2000:], poll=0.3)

    def rows(self) -> dict[str, list[str]]:
        """Rows of the overview by the names of queries."""
        return {row[0]: row for row in self.browser.table("queries-table")}

    def go(self, query: str, page: str = "History") -> None:
        """Opens a page of a query, by clicks."""
        self.browser.open(self.address)
        self.browser.click("#queries-table a", query)
        if page != "History":
            self.browser.click("#run-pages a", page)

    def picture(self, name: str) -> None:
        take_picture(self.browser, f"{self.name}-{name}")

    def pages(self, query: str) -> dict[str, list[list[str]]]:
        """Tables of all pages about a query."""
        found = {}
        for page, table in (("History", "history-table"), ("Summary", "summary"), ("State", "stores-table")):
            self.go(query, page)
            found[page] = self.browser.table(table)
            assert found[page]
        return found


def check_overview(tab: Tab) -> None:
    browser = tab.browser
    browser.open(tab.address)
    rows = tab.rows()
    assert set(rows) == {STEADY, FAILING, WAITING, WIDE}  # the hostile name is text
    assert rows[FAILING][4:9] == ["3", "0", "2", "1", "0"]
    assert "query ended" in rows[FAILING][10]
    assert all(row[13].startswith("generation 1: process ") and "fenced" not in row[13] for row in rows.values())
    browser.click("#queries-table th a", "Query")
    ascending = [row[0] for row in browser.table("queries-table")]
    browser.click("#queries-table th a", "Query")
    assert [row[0] for row in browser.table("queries-table")] == ascending[::-1]
    assert sorted(ascending) == ascending


def check_failing(tab: Tab) -> None:
    browser = tab.browser
    tab.go(FAILING)
    history = browser.table("history-table")
    assert [row[1:3] for row in history] == [["2", "FAILED"], ["1", "COMPLETED"], ["0", "COMPLETED"]]
    assert history[0][-1].startswith("query ended")
    tab.picture("history")
    browser.click("#history-table th a", "Status")
    assert [row[2] for row in browser.table("history-table")] == ["COMPLETED", "COMPLETED", "FAILED"]
    browser.click("#run-pages a", "Summary")
    summary = {row[0]: row[1:] for row in browser.table("summary")}
    assert "newest 2 of 2" in browser.text()
    assert summary["Rows"] == ["10", "15", "20", "10", "20", "20", "20"]
    assert all(cell.endswith("s") for cell in summary["Duration"])
    tab.picture("summary")
    assert browser.text("#run-pages .active") == "Summary"
    browser.click("#run-pages a", "Timeline")
    assert browser.texts("#checkpoints-timeline .ckpt-mark")[0] == "aborted"


def check_operators(tab: Tab) -> None:
    """Two operators, sorted in the browser by figures."""
    browser = tab.browser
    tab.go(STEADY)
    assert "Checkpoints of a query" in browser.texts("h3")
    assert STEADY in browser.text()
    row = next(row for row in browser.table("history-table") if row[2] == "COMPLETED" and int(row[9]) >= 100)
    browser.click("#history-table td a", row[0])
    names = {row[0] for row in browser.table("operators")}
    assert len(names) == 2
    for table, header, column in (
        ("operators", "Rows", 7),
        ("operators", "New size", 4),
        ("operators", "Operator", 0),
        ("spreads", "Rows", 10),
    ):
        orders = []
        for _ in range(2):
            browser.click(f"#{table} th", header)
            keys = browser.run(
                "return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
                ".map(r => Number(r.cells[arguments[1]].getAttribute('sorttable_customkey')))",
                table,
                column,
            )
            assert keys in (sorted(keys), sorted(keys, reverse=True))
            orders.append(keys)
        assert orders[0] == orders[1][::-1] and orders[0] != orders[1], header
    tab.picture("checkpoint")


def check_wide(tab: Tab) -> None:
    """Pages of tables and strips of 200 partitions."""
    browser = tab.browser
    everything = {str(partition) for partition in range(PARTITIONS)}
    tab.go(WIDE)
    browser.click("#history-table td a")
    assert f"Subtasks ({PARTITIONS})" in browser.text()
    first = [row[2] for row in browser.table("subtasks-table")]
    browser.click("#subtasks a.page-link", "2")
    second = [row[2] for row in browser.table("subtasks-table")]
    assert len(first) == len(second) == 100 and {*first, *second} == everything
    browser.click("#subtasks th a", "Partition")
    assert [row[2] for row in browser.table("subtasks-table")] == [str(n) for n in range(100)]
    tab.go(WIDE, "State")
    (store,) = browser.table("stores-table")
    assert store[1:3] == [str(PARTITIONS), "1000"] and float(store[7]) >= 1
    bars = browser.sizes("#rows-0 rect")
    assert len(bars) == PARTITIONS and all(width > 0.5 for width, _ in bars)
    rows = [int(text.split(": ")[1]) for text in browser.texts("#rows-0 rect title")]
    assert sum(rows) == 1000
    heights = [height for _, height in bars]
    assert max(heights) > 100 and heights.index(max(heights)) == rows.index(max(rows))
    browser.click("#partitions th a", "Rows")
    browser.click("#partitions th a", "Rows")
    assert [int(row[2]) for row in browser.table("partitions-table")] == sorted(rows, reverse=True)[:100]
    tab.picture("state-wide")
    tab.go(WIDE, "Timeline")
    assert len(browser.texts("#subtasks-timeline .ckpt-bar")) == PARTITIONS
    strips = browser.sizes("#subtasks-timeline .ckpt-bar")
    assert all(width > 50 and height > 4 for width, height in strips)
    tab.picture("timeline-wide")


def check_growth(tab: Tab) -> None:
    """Lines of two operators, of which one grows."""
    browser = tab.browser
    tab.go(STEADY, "State")
    assert len(browser.texts("#growth-rows polyline")) == 3
    values = [text for text in browser.texts("#growth-rows circle title") if "dedupe" in text]
    rows = [int(text.rpartition(": ")[2]) for text in values]
    assert len(rows) > 5 and rows == sorted(rows) and rows[-1] > rows[0]
    (width, height), *_ = browser.sizes("#growth-rows svg")
    assert width > 300 and height > 100
    tab.picture("state")
    tab.go(STEADY, "Timeline")
    tab.picture("timeline")
    browser.click("#checkpoints-timeline a")
    assert "key=" in browser.address


def check_configuration(tab: Tab) -> None:
    browser = tab.browser
    tab.go(WIDE, "Configuration")
    settings = {row[0]: row[1:] for row in browser.table("settings")}
    assert set(settings) == {PREFIX + setting.suffix for setting in SETTINGS}
    assert settings[f"{PREFIX}retained"] == ["10000", "set", "2"]
    assert settings[f"{PREFIX}store"] == ["filesystem", "default", "filesystem"]
    tab.picture("configuration")


def check_waiting(tab: Tab, status: str) -> None:
    """A checkpoint that two of three subtasks have acknowledged."""
    browser = tab.browser
    tab.go(WAITING)
    assert browser.table("history-table")[0][1:4] == ["1", status, "2/3"]
    browser.click("#run-pages a", "Timeline")
    mark = browser.texts("#checkpoints-timeline .ckpt-mark")[0]
    assert mark == ("aborted" if status == "FAILED" else "in progress, 2/3 acknowledged")
    marks = browser.texts("#subtasks-timeline .ckpt-mark")
    assert marks.count("aborted") == (1 if status == "FAILED" else 0)
    tab.picture("timeline-waiting")


def check_pages(tab: Tab, waiting: str) -> None:
    check_overview(tab)
    check_failing(tab)
    check_wide(tab)
    check_growth(tab)
    check_waiting(tab, waiting)
    own = tab.address.split("/")[2]
    assert {name.split("/")[2] for name in tab.browser.loaded()} == {own}


@pytest.mark.long
def test_the_tab_in_a_browser(browser: Browser, job: DriverJob, tmp_path: Path) -> None:
    folder = tmp_path / "driver"
    assert job.await_((folder / "ui").exists), job.output()[-4000:]
    live = Tab(browser, f"{(folder / 'ui').read_text()}/checkpoints/", "live")
    live.open_until(lambda: "2/3 acknowledged" in live.rows()[WAITING][5] and int(live.rows()[STEADY][6]) > 12)
    live.picture("overview")
    assert {live.rows()[name][2] for name in (STEADY, WAITING, WIDE)} == {"RUNNING"}
    check_pages(live, "IN PROGRESS")
    check_operators(live)
    check_configuration(live)
    pages = {name: live.pages(name) for name in (FAILING, WIDE)}
    assert browser.errors() == []
    (folder / "stop").touch()
    assert job.wait() == 0, job.output()[-4000:]

    server = HistoryServer(tmp_path / "logs", tmp_path)
    try:
        logs = (name for name in os.listdir(tmp_path / "logs") if not name.startswith("."))
        application = next(logs).removeprefix("eventlog_v2_")
        ended = Tab(browser, f"{server.address}/history/{application}/checkpoints/", "ended")
        ended.open_until(lambda: len(ended.rows()) == 4)
        browser.errors()  # until the server had read the event log, there was no such page
        assert {row[2] for row in ended.rows().values()} == {"ENDED"}
        check_pages(ended, "FAILED")
        assert {name: ended.pages(name) for name in (FAILING, WIDE)} == pages
        assert browser.errors() == []
    finally:
        server.close()
