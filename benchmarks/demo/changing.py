"""A demo whose queries change on the way: runs each stage with its kills, and evolves the state in between."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.demo.session import REPOSITORY
from benchmarks.demo.stages import FIRST, SOURCE_REPLACED, STAGES, hold_back, release
from benchmarks.demo.supervisor import DriverFailedError, Kill, Supervisor

TITLES = {2: "the aircraft query gets an aggregate", SOURCE_REPLACED: "the flights come from another folder"}


@dataclass
class ChangingSupervisor(Supervisor):
    """Runs one demo in stages. Kills are distributed over all of them.

    Args:
        report: called with each line about a change.
    """

    report: Callable[[str], None] = field(kw_only=True)

    def run(self) -> list[Kill]:
        """Run all stages; return the kills that interrupted a batch."""
        hold_back(self.layout)
        for stage in STAGES:
            self.layout = release(self.layout, stage, self.files)
            if stage != FIRST:
                self._evolve(stage)
            super().run()
        return self.done

    def _evolve(self, stage: int) -> None:
        """Let the queries of a stage continue from the state of the one before."""
        self.report(f"change {stage - 1} of {len(STAGES) - 1}: {TITLES[stage]}")
        log = self.layout.work / f"evolve-{stage}.log"
        command = [sys.executable, "-m", "benchmarks.demo.evolving", *self.command()[3:]]
        with log.open("wb") as errors:
            done = subprocess.run(
                command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, check=False
            )
        if done.returncode:
            raise DriverFailedError(log, "\n".join(log.read_text(errors="replace").splitlines()[-40:]))
        for line in done.stdout.decode().splitlines():
            self.report(f"  {line}")
