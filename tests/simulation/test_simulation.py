"""Schedules of every kind, and properties of the simulation itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.faults import Faults
from tests.simulation.mutation_worlds import DAMAGED, ROLLED_BACK, SLOW, TAGGED
from tests.simulation.profile import INCIDENTS, Profile
from tests.simulation.schedules import Tally, play, play_many

SHORT, LONG = 2, 18
"""Tests with random schedules, in make test and in make test-long."""

CHUNK = 100
SEEDS_PER_CASE = 6
"""Schedules per test."""

STORAGE_FAILS = Faults(error=0.05, error_after=0.05, late=0.05, exists=0.05)

DYING = Profile(faults=Faults(kill=0.1), large=1.0, speculation=0.5, incidents=4, settings={"inlineThreshold": "0"})

CASES = {
    "nothing goes wrong": Profile(),
    "every segment is a file": Profile(large=1.0, settings={"inlineThreshold": "0", "chain.maxDeltas": "1"}),
    "storage fails": Profile(faults=STORAGE_FAILS, large=0.5, settings={"inlineThreshold": "0"}),
    "storage fails and nothing is tolerated": Profile(faults=STORAGE_FAILS, settings={"tolerableFailures": "0"}),
    "side process dies at storage operations": Profile(faults=Faults(kill=0.03), large=0.5),
    "side process is killed": Profile(incidents=8, weights={"kill side process": 1}, layout="stores"),
    "driver is killed": Profile(incidents=6, weights={"kill driver": 1}, large=0.5),
    "driver stands still": Profile(incidents=6, weights={"freeze driver": 1}, large=0.5),
    "three drivers": Profile(
        incidents=8, weights={"freeze driver": 1, "start driver": 3}, settings={"inlineThreshold": "0"}
    ),
    "three drivers on a failing storage": Profile(
        faults=STORAGE_FAILS,
        incidents=8,
        weights={"kill side process": 1, "kill driver": 1, "freeze driver": 1, "start driver": 3},
        settings={"inlineThreshold": "0"},
    ),
    "executors are lost": Profile(incidents=8, weights={"lose executor": 1}, layout="stages", batches=7),
    "state is restored lazily": Profile(
        is_lazy=True, incidents=8, weights={"lose executor": 1, "stop query": 1}, large=0.5, batches=7
    ),
    "local disks fail": Profile(local_disk=0.2, batches=7, settings={"chain.maxDeltas": "2"}),
    "local disks fail under speculating tasks": Profile(
        local_disk=0.05, speculation=0.5, twice=0.5, layout="stores", large=0.5, incidents=4
    ),
    "the number of partitions changes": Profile(rescale=0.5, batches=8, large=0.5),
    "the number of partitions changes in files": Profile(
        rescale=0.5, batches=8, large=1.0, layout="stages", settings={"inlineThreshold": "0", "chain.maxDeltas": "1"}
    ),
    "the number of partitions changes where drivers die": Profile(
        rescale=0.5,
        batches=8,
        large=0.5,
        layout="stores",
        incidents=8,
        weights={"kill driver": 3, "kill side process": 3, "lose executor": 1, "stop query": 1, "freeze driver": 1},
    ),
    "the number of partitions changes on a failing storage": Profile(
        rescale=0.5, batches=8, large=0.5, faults=replace(STORAGE_FAILS, kill=0.03), speculation=0.3, merges=True
    ),
    "the number of partitions changes under three drivers": Profile(
        rescale=0.3, batches=8, incidents=8, weights={"freeze driver": 2, "start driver": 3, "kill driver": 1}
    ),
    "query is stopped": Profile(incidents=8, weights={"stop query": 1}, layout="operators"),
    "speculation": Profile(speculation=1.0, executors=3, layout="stores"),
    "stages are attempted again": Profile(fetch_failure=0.8, faults=Faults(error=0.03), layout="stages"),
    "batch is used twice": Profile(twice=1.0, large=0.5, layout="stages"),
    "batch is used twice by speculating tasks": Profile(twice=1.0, speculation=0.5, checkpoint_format=2),
    "ends of tasks are not reported": Profile(lost_events=0.2, faults=Faults(error=0.03), speculation=0.3),
    "checkpoints expire": Profile(settings={"timeout": "1.5"}, faults=Faults(pause=0.6), layout="stages"),
    "garbage is collected": Profile(
        faults=STORAGE_FAILS,
        large=0.5,
        incidents=12,
        weights={
            "kill driver": 1,
            "freeze driver": 2,
            "start driver": 1,
            "lose executor": 1,
            "stop query": 1,
            "collect garbage": 8,
        },
        settings={"inlineThreshold": "0"},
    ),
    "ZooKeeper": Profile(store="zookeeper", faults=STORAGE_FAILS, large=0.5, settings={"inlineThreshold": "0"}),
    "sessions expire": Profile(
        store="zookeeper",
        faults=Faults(error=0.03),
        incidents=8,
        weights={"kill side process": 1, "kill driver": 1, "expire session": 3},
    ),
    "three drivers on ZooKeeper": Profile(
        store="zookeeper",
        faults=STORAGE_FAILS,
        incidents=8,
        weights={
            "kill side process": 1,
            "kill driver": 1,
            "freeze driver": 2,
            "start driver": 3,
            "collect garbage": 1,
            "expire session": 1,
        },
        large=0.5,
    ),
    "checkpoints are tagged": TAGGED,
    "checkpoints are tagged on a failing object store": replace(
        TAGGED, is_remote=True, lag=2.0, faults=replace(STORAGE_FAILS, pause=0.6)
    ),
    "checkpoints are tagged beside ZooKeeper": replace(
        TAGGED, store="zookeeper", faults=replace(STORAGE_FAILS, pause=0.6)
    ),
    "checkpoints are tagged beside rollbacks": replace(
        TAGGED, weights={"tag a checkpoint": 6, "roll back": 3, "start driver": 1, "kill driver": 1}
    ),
    "runs of one batch": Profile(one_batch=1.0, large=0.5, settings={"inlineThreshold": "0"}, batches=7),
    "quiet days, with garbage collected beside them": Profile(
        large=1.0,
        incidents=8,
        weights={"quiet days": 3, "lose executor": 1, "kill side process": 1},
        settings={"inlineThreshold": "0", "chain.maxDeltas": "1"},
    ),
    "clocks are wrong": Profile(
        faults=STORAGE_FAILS,
        incidents=12,
        weights={"clock goes wrong": 4, "freeze driver": 2, "start driver": 3, "kill side process": 1},
        claims_kept=4,
        batches=7,
    ),
    "garbage is collected where clocks are wrong": Profile(
        large=1.0,
        incidents=12,
        weights={"clock goes wrong": 3, "collect garbage": 6, "quiet days": 1, "kill driver": 1},
        settings={"inlineThreshold": "0", "chain.maxDeltas": "1"},
        is_remote=True,
    ),
    "listings lag behind": Profile(
        lag=5.0,
        faults=Faults(error=0.03),
        incidents=8,
        weights={"kill driver": 1, "start driver": 2, "collect garbage": 3},
    ),
    "standalone": Profile(
        store="standalone",
        faults=Faults(error=0.03, error_after=0.03),
        large=0.5,
        incidents=6,
        weights={"kill driver": 1, "kill side process": 1, "lose executor": 1, "collect garbage": 2},
        settings={"inlineThreshold": "0"},
    ),
    "three drivers and ids in Spark's commit log": Profile(
        checkpoint_format=2,
        faults=Faults(error=0.03, error_after=0.03, late=0.03, exists=0.03, kill=0.01),
        incidents=10,
        weights={"kill side process": 2, "kill driver": 1, "freeze driver": 2, "start driver": 3, "stop query": 1},
        speculation=0.3,
        batches=7,
    ),
    "deltas are merged": Profile(
        merges=True,
        settings={"chain.maxDeltas": "1", "chain.maxDeltaRatio": "50"},
        faults=Faults(error=0.02),
        large=0.3,
        incidents=6,
        weights={"kill side process": 1, "lose executor": 2, "kill driver": 1, "start driver": 1, "collect garbage": 1},
        speculation=0.3,
        batches=14,
    ),
    "bases and merges take many batches": replace(
        SLOW,
        slow=30,
        batches=30,
        executors=2,
        parallelism=1,
        faults=Faults(error=0.02),
        incidents=6,
        weights={"kill side process": 1, "lose executor": 1, "kill driver": 1, "start driver": 1, "collect garbage": 1},
    ),
    "some partitions are idle": Profile(
        parallelism=4,
        idle=3,
        batches=45,
        settings={"inlineThreshold": "0", "chain.maxDeltas": "4"},
        small_bytes=64,
    ),
    "real-time mode": Profile(
        real_time=1.0,
        checkpoint_format=2,
        incidents=8,
        weights={"kill side process": 2, "kill driver": 2, "lose executor": 1, "stop query": 1},
        faults=Faults(error=0.03, error_after=0.03, kill=0.02),
        large=0.5,
        settings={"inlineThreshold": "0"},
    ),
    "real-time mode and micro-batches": Profile(
        real_time=0.5,
        checkpoint_format=2,
        incidents=8,
        weights={"kill side process": 2, "kill driver": 2, "stop query": 1},
        faults=Faults(error=0.03),
        one_batch=0.3,
        batches=8,
    ),
    "three drivers in real-time mode": Profile(
        real_time=1.0,
        checkpoint_format=2,
        incidents=8,
        weights={"freeze driver": 2, "start driver": 3, "kill side process": 1},
        faults=STORAGE_FAILS,
        large=0.5,
    ),
    "rolled back beside live drivers": ROLLED_BACK,
    "rolled back on a failing storage": replace(ROLLED_BACK, faults=replace(STORAGE_FAILS, pause=0.6)),
    "rolled back with ZooKeeper": replace(ROLLED_BACK, store="zookeeper"),
    "rolled back on an object store": replace(
        ROLLED_BACK,
        is_remote=True,
        # Without rename, the fence holds against stalls that are shorter than a rollback's wait.
        weights={what: weight for what, weight in ROLLED_BACK.weights.items() if what != "freeze driver"},
    ),
    "rolled back by drivers that find damage": DAMAGED,
    "rolled back by drivers and by a person": replace(DAMAGED, weights={**DAMAGED.weights, "roll back": 2}),
    "rolled back by drivers on a failing storage": replace(DAMAGED, faults=replace(STORAGE_FAILS, pause=0.6)),
    "rolled back by drivers with ZooKeeper": replace(DAMAGED, store="zookeeper"),
    "rolled back by drivers on an object store": replace(
        DAMAGED,
        is_remote=True,
        weights={what: weight for what, weight in DAMAGED.weights.items() if what != "freeze driver"},
    ),
    "ids in Spark's commit log": Profile(
        checkpoint_format=2,
        incidents=8,
        weights={"kill side process": 2, "kill driver": 1, "lose executor": 1, "stop query": 1},
        faults=Faults(error=0.03),
        speculation=0.3,
    ),
}


@pytest.mark.parametrize(
    "first",
    [pytest.param(chunk * CHUNK, marks=[] if chunk < SHORT else [pytest.mark.long]) for chunk in range(SHORT + LONG)],
)
def test_random_worlds(first: int) -> None:
    tally = play_many(range(first, first + CHUNK))
    assert not tally.failures, tally.failures
    assert tally.counts["checkpoints"] > CHUNK


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    tally = Tally()
    for seed in range(SEEDS_PER_CASE):
        played = play(seed, CASES[case])
        assert played.failure is None, "\n".join([*played.log[-60:], f"seed {seed}: {played.failure}"])
        tally.counts.update(played.counts)
    assert tally.counts["checkpoints"] >= SEEDS_PER_CASE * CASES[case].batches


@pytest.mark.parametrize("store", ["filesystem", "zookeeper", "standalone"])
@pytest.mark.parametrize("cleanup", ["deleteOnCancellation", "deleteOnEnd"])
def test_checkpoints_that_are_to_go_with_their_query(store: str, cleanup: str) -> None:
    """Either nothing is left or the rest is whole; checkpoints that must be retained are (see `Checks`)."""
    undisturbed = Profile(store=store, settings={"cleanup": cleanup}, large=0.5)
    stopped = Profile(
        store=store, settings={"cleanup": cleanup}, incidents=6, weights={"stop query": 1, "quiet days": 1}
    )
    for profile in (undisturbed, stopped):
        tally = Tally()
        for seed in range(10):
            played = play(seed, profile)
            assert played.failure is None, "\n".join([*played.log[-60:], f"seed {seed}: {played.failure}"])
            tally.counts.update(played.counts)
        ends = profile is stopped or cleanup == "deleteOnEnd"
        assert bool(tally.counts["checkpoints discarded"]) == ends


def test_all_that_can_go_wrong_does() -> None:
    """Every fault and incident occurs: a world that lost one of them would prove less than it seems to."""
    counts = play_many(range(CHUNK)).counts
    for seed in range(10):
        # Deletions are rare: they wait for the end of a batch. So are purges: a driver has to die in real-time mode.
        # And transactions: a world has to have ZooKeeper.
        counts.update(play(seed, DYING).counts)
        counts.update(play(seed, CASES["real-time mode"]).counts)
        counts.update(play(seed, CASES["ZooKeeper"]).counts)
    for what in (
        *(f"ack: {outcome}" for outcome in ("success", "duplicate", "denied")),
        *(f"create: {fault}" for fault in ("error", "lost answer", "late", "exists")),
        *(f"delete: {fault}" for fault in ("error", "lost answer", "late")),
        *("write: error", "list: error", "read: error", "executor write: error"),
        *("killed before create", "killed after create", "killed before delete", "killed after delete"),
        *(f"transaction: {fault}" for fault in ("error", "lost answer", "late")),
        *(f"local disk fails {when}" for when in ("between batches", "in a batch", "in a fold", "in a base")),
        *INCIDENTS,
        *(
            "task failed: FencedError",
            "stage attempted again",
            "listener event lost",
            "aborted",
            "subsumed",
            "run of few batches",
            "checkpoints discarded",
            "started over",
            "batch in real-time mode",
            "offsets purged",
            "loaded the rest in a batch",
            "loaded the rest in the background",
            *(f"clock: {how}" for how in ("forward", "back", "1970", "still")),
        ),
    ):
        assert counts[what], f"'{what}' has not happened"


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 10))])
def test_bases_and_merges_that_take_up_to_500_batches(seed: int) -> None:
    """Each is used when it arrives (see `Checks`), through the validation of the real job."""
    played = play(seed, replace(SLOW, parallelism=1, batches=600))
    assert played.failure is None, "\n".join([*played.log[-60:], f"seed {seed}: {played.failure}"])
    for what in ("took 1 batches or more", "took 10 batches or more", "took 100 batches or more"):
        assert played.counts[what], f"'{what}' has not happened"
    assert played.counts["merged deltas in an ack"]


@pytest.mark.parametrize("partitions", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_many_partitions(partitions: int) -> None:
    """Two batches and a restart. Storage and messages take no time, or tasks would wait for others in vain."""
    played = play(1, Profile(parallelism=partitions, batches=2, faults=Faults(pause=0.0)))
    assert played.failure is None, "\n".join([*played.log[-60:], str(played.failure)])
    assert played.counts["ack: success"] == 3 * partitions


def test_drivers_meet_rollbacks() -> None:
    counts: Counter[str] = Counter()
    for seed in range(60):
        counts.update(play(seed, ROLLED_BACK).counts)
    fenced = ("run fenced off by a rollback", "entry of a driver fenced off", "rollback fenced off by a driver")
    for what in ("rolled back", "second start refused", *fenced):
        assert counts[what], f"'{what}' has not happened"


def test_drivers_find_damage_beside_others() -> None:
    counts: Counter[str] = Counter()
    for seed in range(80):  # a query is seldom rolled back while it is about to roll back itself
        counts.update(play(seed, DAMAGED).counts)
    for what in (
        *("metadata damaged", "state damaged", "rolled back automatically"),
        *("run fenced off by a rollback", "entry of a driver fenced off"),
        *(f"automatic rollback failed: {why}" for why in ("FencedError", "LogFencedError")),
    ):
        assert counts[what], f"'{what}' has not happened"


def test_garbage_is_collected() -> None:
    """Orphans must be older than the newest checkpoint, so a short schedule has few."""
    assert sum(play(seed, CASES["garbage is collected"]).counts["garbage collected"] for seed in range(30))


def test_a_schedule_is_a_function_of_its_seed_in_every_process() -> None:
    """The trace does not depend on Python's random hashes either."""
    command = [sys.executable, "-m", "tests.simulation", "--seed", "3", "--trace"]
    root = Path(__file__).parents[2]
    traces = {
        subprocess.run(
            command, cwd=root, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(traces) == 1
    assert b"every invariant holds" in traces.pop()
