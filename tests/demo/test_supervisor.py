from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

import benchmarks.demo.supervisor as supervisor_module
from benchmarks.demo.layout import Layout
from benchmarks.demo.supervisor import DriverFailedError, Kill, QueryState, Supervisor, _is_alive
from benchmarks.demo.topics import Topics
from tests.support.waiting import eventually

# Writes logs as Spark does: a batch is planned, takes a while, and is committed. Has a child process, like the real
# driver. The third batch of each life waits for the kill: on a busy machine, a late kill would find no batch.
DRIVER = """
import json, subprocess, sys, time
from pathlib import Path

work, batches, seconds, waits = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "True"
committed = 0
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
(work / "child").write_text(str(child.pid))
logs = [work / "checkpoints" / name for name in ("aircraft", "weather", "routes")]
for log in logs:
    for kind in ("offsets", "commits"):
        (log / kind).mkdir(parents=True, exist_ok=True)
for batch in range(batches):
    if (logs[-1] / "commits" / str(batch)).exists():
        continue
    for log in logs:
        (log / "offsets" / str(batch)).write_text("v1\\n{}\\n" + json.dumps({"logOffset": batch}))
    time.sleep(seconds)
    while waits and committed == 2 and not (work / "all are killed").exists():
        time.sleep(0.05)
    for log in logs:
        (log / "commits" / str(batch)).touch()
    committed += 1
child.kill()
"""


@dataclass
class Notes:
    """An audience that records the events."""

    starts: list[int] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    last: list[QueryState] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def started(self, start: int) -> None:
        self.starts.append(start)

    def progressed(self, states: list[QueryState]) -> None:
        self.last = states

    def resumed(self, start: int, seconds: float) -> None:
        self.resumes.append(start)

    def serves(self, address: str) -> None:
        self.addresses.append(address)

    def killed(self, kill: Kill) -> None:
        self.kills.append(kill)


@dataclass
class FakeDriver(Supervisor):
    """Supervises a program that only writes Spark's logs."""

    program: str = DRIVER
    seconds: float = 0.1
    waits: bool = False
    """True if batches wait for their kills."""

    def note(self, kill: Kill) -> None:
        super().note(kill)
        if len(self.done) == self.kills:
            (self.layout.work / "all are killed").touch()

    def command(self) -> list[str]:
        arguments = (self.layout.work, self.files, self.seconds, self.waits)
        return [sys.executable, "-c", self.program, *map(str, arguments)]


def test_kills_in_the_middle_of_batches_and_gets_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "KILL_DELAYS", (0.3, 0.1))
    notes = Notes()
    kills = FakeDriver(Layout(tmp_path), "none", files=6, kills=2, audience=notes, waits=True).run()
    assert kills == notes.kills
    assert [sorted(kill.interrupted) for kill in kills] == [["aircraft", "routes", "weather"]] * 2
    assert len(notes.starts) >= 3
    assert notes.resumes[: len(kills)] == [2, 3]
    assert [state.files for state in notes.last] == [6, 6, 6]


def test_a_batch_that_ends_too_soon_is_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch ends before the kill, so no kill is counted."""
    log = Path(Layout(tmp_path).checkpoint("aircraft"))

    def sleep(seconds: float) -> None:
        if seconds in supervisor_module.KILL_DELAYS:
            batch = max(map(int, os.listdir(log / "offsets")))
            eventually((log / "commits" / str(batch)).exists)
        time.sleep(seconds)

    monkeypatch.setattr(supervisor_module, "KILL_DELAYS", (0.001,))
    monkeypatch.setattr(supervisor_module, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    notes = Notes()
    supervisor = FakeDriver(Layout(tmp_path), "none", files=40, kills=3, audience=notes, seconds=0.02)
    assert supervisor.run() == []
    assert notes.starts == [1]


def test_announces_the_ui_of_each_driver_once(tmp_path: Path) -> None:
    (tmp_path / "ui").write_text("http://of-an-earlier-driver")
    announces = 'from pathlib import Path\nimport sys\nPath(sys.argv[1], "ui").write_text("http://x:4040")\n'
    notes = Notes()
    FakeDriver(Layout(tmp_path), "none", files=2, kills=0, audience=notes, program=announces + DRIVER).run()
    assert notes.addresses == ["http://x:4040"]


def test_leaves_no_process_behind(tmp_path: Path) -> None:
    FakeDriver(Layout(tmp_path), "none", files=2, kills=1, audience=Notes()).run()
    child = int((tmp_path / "child").read_text())
    try:
        state = Path(f"/proc/{child}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        state = "(gone) Z"
    assert state.rpartition(") ")[2].startswith("Z")
    assert not _is_alive(child)


def test_a_driver_that_fails_by_itself_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    supervisor = FakeDriver(
        Layout(tmp_path), "none", files=1, kills=0, audience=Notes(), program="raise RuntimeError('no such luck')"
    )
    with pytest.raises(DriverFailedError, match="no such luck") as caught:
        supervisor.run()
    assert caught.value.log == Layout(tmp_path).driver_log(1)


def test_a_driver_is_told_where_its_checkpoints_and_topics_are() -> None:
    here = Supervisor(Layout(Path("/w")), "ckpt", files=1, kills=0, audience=Notes()).command()
    assert here[-4:] == ["--work", "/w", "--provider", "ckpt"]
    layout = Layout(Path("/w"), "s3a://bucket/demo", {"a": "1", "b": "x=y"})
    there = Supervisor(layout, "ckpt", files=1, kills=0, audience=Notes()).command()
    topics = Supervisor(Layout(Path("/w"), topics=Topics("h:1", (3,))), "ckpt", files=1, kills=0, audience=Notes())
    assert topics.command() == [*here, "--kafka", "h:1"]
    assert there == [*here, "--checkpoints", "s3a://bucket/demo", "--conf", "a=1", "--conf", "b=x=y"]
