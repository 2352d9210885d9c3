"""A query with a damaged newest checkpoint, restarted by a supervisor, rolls back and continues.

Each case damages one file of the newest checkpoint while the query is stopped. The first start may fail with
`RolledBackError`; the second one runs, and the result is the batch answer.
"""

from __future__ import annotations

import random
import sys
import textwrap
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import committed_batches
from tests.support.counts import RunningCount
from tests.support.events import events
from tests.support.jobs import Jobs
from tests.support.processes import DriverJob
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest

FAILED = 3
TIMEOUT_SECONDS = 45

SLOW = textwrap.dedent(
    f"""
    import sys, time
    from spark_ckpt.bridge import __main__ as main
    from spark_ckpt.recovery import rollback_on_damage

    verify = rollback_on_damage.verify_checkpoint

    def verify_slowly(storage, record, progress):
        for second in range({TIMEOUT_SECONDS} + 10):
            time.sleep(1)
            progress(second, 1000)
        return verify(storage, record, progress=progress)

    rollback_on_damage.verify_checkpoint = verify_slowly
    sys.exit(main.main())
    """
)
SETTINGS = {"onDamage": "rollBack", "inlineThreshold": "0", "retained": "3"}


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has checkpoints")


def flipped(at: Callable[[int], int]) -> Callable[[Path], None]:
    def flip(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[at(len(data))] ^= 1
        file.write_bytes(data)

    return flip


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


FILES = {
    "state": "ckpt/shared/*",
    "metadata": "ckpt/chk-*/_metadata",
    "record": "ckpt/completed/*.json",
}
DAMAGES: dict[str, Callable[[Path], None]] = {
    "first byte": flipped(lambda length: 0),
    "middle byte": flipped(lambda length: length // 2),
    "last byte": flipped(lambda length: length - 1),
    "truncated": truncated,
    "missing": Path.unlink,
}
SOME_PAIRS = {
    ("state", "last byte"),
    ("state", "missing"),
    ("metadata", "middle byte"),
    ("metadata", "truncated"),
    ("record", "missing"),
}
EACH_PAIR = [
    pytest.param(*pair, marks=[] if pair in SOME_PAIRS else [pytest.mark.long]) for pair in product(FILES, DAMAGES)
]


def newest(location: Path, kind: str) -> Path:
    files = [file for file in location.glob(FILES[kind]) if not file.name.startswith(".")]
    return max(files, key=lambda file: file.stat().st_mtime_ns)


def supervised(count: RunningCount) -> list[str]:
    """Starts the query until it runs, at most twice; returns the errors of the failed starts."""
    try:
        count.drain()
    except StreamingQueryException as error:
        count.drain()
        return [str(error)]
    return []


@pytest.fixture
def stopped(count: RunningCount) -> RunningCount:
    """A stopped query after some batches, with more input waiting."""
    for key, value in SETTINGS.items():
        count.spark.conf.set(CKPT_PREFIX + key, value)
    count.drop(1)
    count.drain()
    count.drop(1)
    return count


def answer_is_right(count: RunningCount) -> None:
    rows = [tuple(row) for row in count.plan(count.feed.table(count.spark)).collect()]
    assert sorted(count.sink.rows()) == sorted(rows)


@pytest.mark.parametrize(("kind", "damage"), EACH_PAIR)
def test_the_second_start_runs(stopped: RunningCount, kind: str, damage: str) -> None:
    last = committed_batches(stopped.location)[-1]
    file = newest(stopped.location, kind)
    DAMAGES[damage](file)
    assert not verify(LocalStorage(stopped.location)).is_whole
    (error,) = supervised(stopped)
    assert "[RolledBackError]" in error
    assert damage == "missing" or file.name in error
    answer_is_right(stopped)
    assert committed_batches(stopped.location)[-1] >= last
    assert verify(LocalStorage(stopped.location), everything=True).is_whole


def test_the_error_names_the_file_and_the_command(stopped: RunningCount) -> None:
    """With `onDamage` set to fail, the query stays stopped, and its error names the command that helps."""
    stopped.spark.conf.set(CKPT_PREFIX + "onDamage", "fail")
    file = newest(stopped.location, "state")
    DAMAGES["last byte"](file)
    whole = verify(LocalStorage(stopped.location)).restorable[0]
    command = f"spark-ckpt rollback {stopped.location} --id {whole}"
    stopped.fails("[DamagedCheckpointError]", file.name, command)


@pytest.mark.long
@pytest.mark.parametrize("kind", FILES)
def test_a_driver_of_its_own(jobs: Jobs, kind: str) -> None:
    """Recovery with a separate driver process for each start, as under a supervisor."""
    conf = [f"{CKPT_PREFIX}{key}={value}" for key, value in SETTINGS.items()]

    def start() -> DriverJob:
        return jobs.start(conf=conf)

    for batch in events(random.Random(kind), 3):
        jobs.feed.drop(batch)
    jobs.finish(start())
    DAMAGES["missing" if kind == "record" else "middle byte"](newest(jobs.location, kind))
    for batch in events(random.Random(kind + "2"), 1):
        jobs.feed.drop(batch)
    first = start()
    assert first.wait() == FAILED
    assert "[RolledBackError]" in first.output()
    jobs.finish(start())


@pytest.mark.long
def test_going_back_takes_longer_than_a_task_waits_for_an_answer(jobs: Jobs) -> None:
    program, python = jobs.folder / "slow.py", jobs.folder / "python"
    program.write_text(SLOW)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}"\n')
    python.chmod(0o755)
    conf = [f"{CKPT_PREFIX}{key}={value}" for key, value in SETTINGS.items()]
    for batch in events(random.Random(1), 3):
        jobs.feed.drop(batch)
    jobs.finish(jobs.start(conf=conf))
    DAMAGES["middle byte"](newest(jobs.location, "metadata"))
    for batch in events(random.Random(2), 1):
        jobs.feed.drop(batch)
    of_the_first = [f"{CKPT_PREFIX}python={python}", f"{CKPT_PREFIX}bridge.timeout={TIMEOUT_SECONDS}s"]
    first = jobs.start(conf=[*conf, *of_the_first])
    assert first.wait() == FAILED
    assert "[RolledBackError]" in first.output()
    assert "TimeoutException" not in first.output()
    jobs.finish(jobs.start(conf=conf))
