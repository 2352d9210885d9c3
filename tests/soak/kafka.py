"""The main job on Kafka under random kills of driver, coordinator and broker. Run it with `make soak-kafka`."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from tests.soak.killer import COORDINATOR, DRIVER
from tests.spark.kafka_main_job import KafkaMainJob
from tests.support.checkpoints import CheckpointJudge
from tests.support.kafka import KafkaBroker
from tests.support.processes import DriverJob, kill
from tests.support.provider import CKPT, REPOSITORY
from tests.support.session import use_this_python
from tests.support.uncaught import all_caught

BROKER = "broker"
VICTIMS = (DRIVER, COORDINATOR, BROKER)

AWAY_SECONDS = 20.0
"""Longest absence of the broker, in seconds."""

UNREAD = 150
"""Records of both topics that a query may have left to read when more are sent."""

KILLS_PER_PARTITION = 5
"""Number of kills after which each topic gets another partition."""


def main() -> int:
    """Run the main job from Kafka topics to topics and to Delta under random kills, and check every result."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.kafka", description=main.__doc__)
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "soak-kafka", help="is emptied first")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no process behind
    work = options.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    use_this_python()
    began = time.monotonic()
    print(f"{options.kills} kills, seed {options.seed}", flush=True)
    with all_caught(work / "uncaught"), KafkaBroker(work / "kafka") as broker:
        rng = random.Random(options.seed)
        job = KafkaMainJob(broker, work / "job", CKPT, rng, chunks=options.kills + 3)
        try:
            done = run(job, schedule(options.kills, rng), rng, CheckpointJudge(CKPT, work / "metadata"))
        finally:
            job.stop()
    each = ", ".join(f"{done[victim]} of the {victim}" for victim in VICTIMS)
    seconds = time.monotonic() - began
    print(f"{done.total()} kills ({each}), {len(job.started)} drivers, {seconds:.0f} s, seed {options.seed}: equal")
    return 0


def schedule(kills: int, rng: random.Random) -> list[str]:
    """Victims of the kills, all equally frequent, in random order; the driver is the last.

    The claim of the last driver deletes the files that a killed coordinator left behind.
    """
    victims = [VICTIMS[number % len(VICTIMS)] for number in range(1, kills)]
    rng.shuffle(victims)
    return [*victims, DRIVER]


def run(job: KafkaMainJob, victims: list[str], rng: random.Random, judge: CheckpointJudge) -> Counter[str]:
    """Run the job to its end, with a kill of each victim in turn in the middle of a batch; judge the results.

    Returns:
        The number of kills by victim.

    Raises:
        AssertionError: a result or a checkpoint location is wrong, or a driver failed although its broker was up.
    """
    done: Counter[str] = Counter()
    driver = job.start()
    for number, victim in enumerate(victims, 1):
        job.send()
        interrupted = job.await_batch(driver)
        if victim == DRIVER:
            driver.kill()
        elif victim == COORDINATOR:
            kill(driver.side_process())
        else:
            job.broker.restart(rng.uniform(0, AWAY_SECONDS))
        done[victim] += 1
        print(f"{number}: killed the {victim} in a batch of {', '.join(interrupted)}", flush=True)
        driver = _survivor(job, driver, victim)
        if number % KILLS_PER_PARTITION == 0:
            for topic in job.inputs:
                topic.add_partitions(len(topic.partitions()) + 1)
        job.await_read(driver, UNREAD)
    job.send(job.chunks_left)
    job.finish(driver, judge.check)
    return done


def _survivor(job: KafkaMainJob, driver: DriverJob, victim: str) -> DriverJob:
    """The driver, or a new one if it was killed, or ended because the broker was away."""
    if victim == DRIVER or (victim == BROKER and not driver.running()):
        return job.start()
    return driver


if __name__ == "__main__":
    sys.exit(main())
