"""Kinds of worlds in which schedules are played."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from spark_ckpt.format.key_groups import MAX_PARALLELISM_LIMIT
from spark_ckpt.messages import Operator
from tests.simulation.damages import DAMAGE
from tests.simulation.faults import Faults
from tests.simulation.model import Query
from tests.simulation.rollbacks import ROLL_BACK
from tests.simulation.tagging import TAG

INCIDENTS = (
    "kill side process",
    "kill driver",
    "freeze driver",
    "start driver",
    "lose executor",
    "stop query",
    "collect garbage",
    "expire session",
    "clock goes wrong",
    "quiet days",
)


NEED_A_FENCE = ("freeze driver", "start driver")
"""Incidents after which two drivers run the query."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of world.

    Args:
        layout: stages, operators and stores of the query.
        parallelism: parallelism of all operators.
        batches: number of batches to complete.
        settings: settings of the coordinator.
        faults: faults of the storage.
        incidents: number of incidents.
        weights: weights of the kinds of incidents; kinds without one do not happen.
        large: probability that a task writes its segment to a file.
        speculation: probability of a second attempt of a task beside the first.
        twice: probability that a batch runs its stages twice.
        fetch_failure: probability of a new stage attempt.
        lost_events: probability that the end of a task is not reported.
        executors: number of executors per driver.
        checkpoint_format: 2 if Spark's commit log names the state ids.
        store: store of completed checkpoints, `filesystem`, `zookeeper` or `standalone`.
        is_remote: whether the storage is an object store: requests are expensive, and a finished write is complete.
        one_batch: probability that a run ends with the batch just completed, like an `availableNow` run.
        lag: seconds for which a listing may show a deleted file.
        claims_kept: number of claims that the log keeps.
        foreign: whether the location contains files that are not ours.
        idle: first of the partitions without input after the first batch.
        real_time: probability that a run is in real-time mode. If it is above 0, the amount of input of a batch varies,
            and so does what a batch that runs again in that mode reads.
        merges: whether deltas are merged, although segments are small here.
        slow: most batches that the writing of a base or a merge takes; 0 if it takes some seconds.
        local_disk: probability that an executor's local disk fails when a store needs it.
        is_lazy: whether states may be restored lazily, although they have few rows here.
        rescale: probability that a running query asks for another number of partitions before a batch.
        gathered: replacement for `subsumption.GATHERED`, since runs are short here; None keeps the original.
        small_bytes: replacement for `policy.SMALL_BYTES`, since segments are small here; None keeps the original.
    """

    layout: str = "one"
    parallelism: int = 2
    batches: int = 5
    settings: dict[str, str] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    incidents: int = 0
    weights: dict[str, float] = field(default_factory=lambda: dict.fromkeys(INCIDENTS, 1.0))
    large: float = 0.0
    speculation: float = 0.0
    twice: float = 0.0
    fetch_failure: float = 0.0
    lost_events: float = 0.0
    executors: int = 2
    checkpoint_format: int = 1
    store: str = "filesystem"
    is_remote: bool = False
    one_batch: float = 0.0
    lag: float = 0.0
    claims_kept: int = 16
    foreign: bool = False
    idle: int | None = None
    gathered: int | None = None
    small_bytes: int | None = None
    real_time: float = 0.0
    merges: bool = False
    slow: int = 0
    local_disk: float = 0.0
    is_lazy: bool = False
    rescale: float = 0.0

    @staticmethod
    def of(rng: random.Random) -> Profile:
        """A random profile. Quiet settings are as likely as wild ones, so that rare faults also occur in isolation."""
        rate = rng.choice((0.0, 0.01, 0.03, 0.08, 0.2))
        faults = Faults(
            error=rng.choice((0.0, rate)),
            error_after=rng.choice((0.0, rate)),
            late=rng.choice((0.0, rate)),
            exists=rng.choice((0.0, rate)),
            kill=rng.choice((0.0, 0.0, rate / 2)),
            pause=rng.choice((0.1, 0.3, 0.6)),
        )
        weights = {what: rng.choice((0.0, 1.0, 3.0)) + 0.01 for what in INCIDENTS}
        checkpoint_format = rng.choice((1, 1, 1, 2))
        store = rng.choice(("filesystem",) * 5 + ("zookeeper",) * 2 + ("standalone",))
        if store == "standalone":
            # Without a fence: one driver at a time, started after all requests and tasks of its predecessor have ended.
            faults.kill = faults.late = 0.0
            weights = {what: weight for what, weight in weights.items() if what not in (*NEED_A_FENCE, "stop query")}
        cleanup = rng.choice(("retain",) * 6 + ("deleteOnCancellation", "deleteOnEnd"))
        retained = rng.choice((2, 2, 2, 3, 5))
        drawn = Profile(
            layout=rng.choice(("one", "one", "stores", "operators", "stages")),
            parallelism=rng.choice((1, 2, 2, 3)),
            batches=rng.randint(3, 7),
            settings={
                "cleanup": cleanup,
                **({} if cleanup == "deleteOnEnd" else {"retained": str(retained)}),
                "inlineThreshold": rng.choice(("0", "0", "20480")),
                "chain.maxDeltas": str(rng.choice((1, 2, 4))),
                "tolerableFailures": str(rng.choice((0, 1, 3))),
                "timeout": rng.choice(("3", "600", "600")),
                "history": "3",
            },
            faults=faults,
            incidents=rng.choice((0, 2, 5, 8)),
            weights=weights,
            large=rng.choice((0.0, 0.3, 1.0)),
            speculation=rng.choice((0.0, 0.3)),
            twice=rng.choice((0.0, 0.0, 0.3)),
            fetch_failure=rng.choice((0.0, 0.3)),
            lost_events=rng.choice((0.0, 0.0, 0.03)),
            executors=rng.choice((1, 2, 3)),
            checkpoint_format=checkpoint_format,
            store=store,
            is_remote=rng.choice((False, True)),
            one_batch=rng.choice((0.0, 0.0, 0.5, 1.0)),
            lag=rng.choice((0.0, 0.0, 2.0)),
            foreign=rng.random() < 0.3,
        )
        real_time = rng.choice((0.0, 0.0, 0.0, 0.0, 0.5, 1.0))
        if real_time == 0.5:
            # A start in real-time mode deletes the offsets of a live driver's micro-batch (docs/real-time-mode.md).
            weights = {what: weight for what, weight in weights.items() if what not in (*NEED_A_FENCE, "stop query")}
            drawn = replace(drawn, weights=weights, faults=replace(faults, kill=0.0, late=0.0))
        if real_time:
            drawn = replace(drawn, real_time=real_time, checkpoint_format=2)
        if drawn.batches > 5:
            # Not drawn, so that each seed keeps its schedule.
            # Else bases would be due first: a delta is as heavy as a base.
            drawn = replace(drawn, merges=True, settings={**drawn.settings, "chain.maxDeltaRatio": "50"})
            if drawn.executors == 1:
                drawn = replace(drawn, slow=8)
        if drawn.executors == 1 and drawn.parallelism > 1:
            drawn = replace(drawn, local_disk=0.05)
        drawn = replace(drawn, gathered=2 if drawn.is_remote and drawn.parallelism == 2 else None)
        if drawn.executors == 3 and store != "standalone":
            drawn = replace(drawn, weights={**drawn.weights, TAG: 3.0})
        if drawn.executors == 2 and store != "standalone" and cleanup == "retain" and not real_time:
            drawn = drawn._with_rollbacks()
        return drawn

    def _with_rollbacks(self) -> Profile:
        """With damages to checkpoints, and rollbacks by a person, or by drivers that find such damage."""
        weights = {**self.weights, DAMAGE: 6.0}
        if self.is_remote:
            # Without rename, the fence holds against stalls that are shorter than a rollback's wait.
            weights.pop("freeze driver")
        if self.parallelism > 1:
            return replace(self, weights=weights, settings={**self.settings, "onDamage": "rollBack"})
        return replace(self, weights={**weights, ROLL_BACK: 6.0})

    def all_settings(self) -> dict[str, str]:
        """Settings of the coordinator with those of the store, without their prefix."""
        quorum = {"zookeeper.quorum": "zookeeper:2181"} if self.store == "zookeeper" else {}
        return {"store": self.store, **quorum, **self.settings}

    def query(self, seed: int) -> Query:
        def operator(number: int, *stores: str) -> Operator:
            return Operator(number, "stateStoreSave", stores, self.parallelism, 2)

        stages = {
            "one": ((operator(0, "default"),),),
            "stores": ((operator(0, "left", "right"),),),
            "operators": ((operator(0, "default"), operator(1, "default")),),
            "stages": ((operator(0, "default"),), (operator(1, "default"),)),
        }[self.layout]
        key_groups = 4 * self.parallelism
        return Query(seed, stages, key_groups if key_groups <= MAX_PARALLELISM_LIMIT else self.parallelism, self.idle)
