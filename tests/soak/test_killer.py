from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.demo.layout import Layout
from benchmarks.demo.supervisor import Kill, QueryState
from tests.soak import killer as killer_module
from tests.soak.killer import COORDINATOR, DRIVER, EXECUTOR, Killer, schedule

# Writes logs as Spark does, batch by batch, with a child process that looks like the coordinator. The last batch waits
# for the last kill: a late one, as on a busy machine, would find nothing to kill.
JOB = """
import json, subprocess, sys, time
from pathlib import Path

work, batches = Path(sys.argv[1]), int(sys.argv[2])
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
children = [subprocess.Popen([*sleep, "spark_ckpt.bridge"]) for _ in range(2)]
logs = [work / "checkpoints" / name for name in ("aircraft", "weather", "routes")]
for log in logs:
    for kind in ("offsets", "commits"):
        (log / kind).mkdir(parents=True, exist_ok=True)
for batch in range(batches):
    if (logs[-1] / "commits" / str(batch)).exists():
        continue
    for log in logs:
        (log / "offsets" / str(batch)).write_text("v1\\n{}\\n" + json.dumps({"logOffset": batch}))
    time.sleep(0.3)
    while batch == batches - 1 and not (work / "all are killed").exists():
        time.sleep(0.05)
    for log in logs:
        (log / "commits" / str(batch)).touch()
for child in children:
    child.kill()
"""


@dataclass
class Silence:
    """An audience that only counts."""

    kills: list[Kill] = field(default_factory=list)
    starts: int = 0

    def started(self, start: int) -> None:
        self.starts = start

    def progressed(self, states: list[QueryState]) -> None: ...

    def resumed(self, start: int, seconds: float) -> None: ...

    def serves(self, address: str) -> None: ...

    def killed(self, kill: Kill) -> None:
        self.kills.append(kill)


@dataclass
class FakeJob(Killer):
    """The killer of such a job."""

    def note(self, kill: Kill) -> None:
        super().note(kill)
        if len(self.done) == self.kills:
            (self.layout.work / "all are killed").touch()

    def command(self) -> list[str]:
        return [sys.executable, "-c", JOB, str(self.layout.work), str(self.files)]


def test_all_victims_come_equally_often_over_the_whole_way(rng: random.Random) -> None:
    plan = schedule(60, rng)
    assert Counter(victim for victim, _, _ in plan) == {DRIVER: 20, EXECUTOR: 20, COORDINATOR: 20}
    shares = [share for _, share, _ in plan if share]
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert 0.5 * 60 < len(shares) < 60, "some kills come in bursts, and most do not"


def test_a_seed_is_a_schedule() -> None:
    assert schedule(20, random.Random(3)) == schedule(20, random.Random(3)) != schedule(20, random.Random(4))


def test_kills_all_and_gets_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed driver is restarted; executor and coordinator are killed without ending the driver."""
    monkeypatch.setattr(killer_module, "LATEST_SECONDS", 0.2)
    monkeypatch.setattr(killer_module, "BURST_SECONDS", 0.2)
    shot: list[int] = []
    monkeypatch.setattr(killer_module, "kill", shot.append)
    audience = Silence()
    job = FakeJob(Layout(tmp_path), "none", 40, 6, audience, executors=lambda: [-7], rng=random.Random(1))
    done = job.run()
    assert Counter(kill.victim for kill in done) == {DRIVER: 2, EXECUTOR: 2, COORDINATOR: 2}
    assert audience.kills == done
    assert audience.starts == job.starts == 3
    assert shot.count(-7) == 2
    assert len(shot) == 4


def test_notes_what_does_not_hold_after_a_kill(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    job = FakeJob(layout, "none", 1, 0, Silence(), starts=3)
    job.inspect()
    assert job.violations == []
    log = Path(layout.checkpoint("routes")) / "ckpt" / "completed"
    log.mkdir(parents=True)
    (log / f"{1:020}.json").write_text("{")
    job.inspect()
    (violation,) = job.violations
    assert violation.startswith("start 3, routes: ")
    assert f"{1:020}.json" in violation
