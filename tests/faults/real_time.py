"""Runs cells of the fault table on queries in real-time mode, one query for each cell, all in one driver."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from tests.faults.injection import arm, disarm, has_struck
from tests.faults.points import RESTARTED, WENT_ON, Cell, Kind, failed
from tests.faults.table import Result, faulty_python
from tests.spark.real_time_queries import RealTimeQueries
from tests.support.checkpoints import CheckpointJudge, completed_checkpoints
from tests.support.kafka import KafkaBroker
from tests.support.provider import CKPT


def run_cells(
    broker: KafkaBroker, work: Path, cells: Sequence[Cell], rng: random.Random, judge: CheckpointJudge
) -> list[Result]:
    """Runs the cells: first together those that leave the driver alive, then one by one those that kill it.

    Raises:
        AssertionError: an answer, a state or a checkpoint is wrong.
    """
    names = [f"counts-{number}" for number in range(len(cells))]
    together = [number for number, cell in enumerate(cells) if cell.kind is not Kind.KILL_DRIVER]
    alone = [[number] for number, cell in enumerate(cells) if cell.kind is Kind.KILL_DRIVER]
    queries = RealTimeQueries(broker, work, CKPT, rng, names)
    python = faulty_python(work)
    try:
        queries.send()
        job = queries.start(python=python)
        for struck in [together, *alone]:
            queries.await_batches(job, 1)
            for number in struck:
                arm(work / names[number], cells[number])
            queries.send()

            def all_struck(struck: list[int] = struck) -> bool:
                return all(has_struck(work / names[number]) for number in struck)

            job.await_(all_struck)
            assert all_struck(), f"the fault has not struck:\n{job.output()[-6000:]}"
            if struck in alone:
                job.wait()
                job = queries.start(python=python)
            for number in struck:
                disarm(work / names[number])
            queries.await_batches(job)
        queries.send()
        queries.finish(job)
        queries.check(judge)
        return [_result(cell, queries, name) for cell, name in zip(cells, names, strict=True)]
    finally:
        queries.stop()


def _result(cell: Cell, queries: RealTimeQueries, name: str) -> Result:
    failures = queries.failures(name)
    restarts = int(cell.kind is Kind.KILL_DRIVER)
    outcome = RESTARTED if restarts else failed(failures[0]) if failures else WENT_ON
    checkpoints = len(completed_checkpoints(queries.location(name)))
    wrong = None if len(failures) <= 1 else f"it failed {len(failures)} times: {failures}"
    return Result(cell, outcome, restarts + len(failures), checkpoints, wrong)
