"""A whole world, made from a seed: the query, its drivers, the storage, and what goes wrong."""

from __future__ import annotations

import logging
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from unittest.mock import patch

from spark_ckpt.clock import Clock
from spark_ckpt.completed.zookeeper_session import ZooKeeperSession
from spark_ckpt.coordinator.collection import collect_garbage
from spark_ckpt.coordinator.messages import Operator
from spark_ckpt.errors import CollectionRefusedError, StorageError
from spark_ckpt.storage import Storage
from tests.simulation.checks import Checks
from tests.simulation.disk import Disk, SimulatedStorage
from tests.simulation.ensemble import Ensemble, SimulatedSession
from tests.simulation.faults import Faults, Late, Way
from tests.simulation.model import Query
from tests.simulation.scheduler import Group, Scheduler, Stuck
from tests.simulation.spark import Driver, Ending

MOST_DRIVERS = 3
MOST_LAST_DRIVERS = 6
INCIDENTS = (
    "kill side process",
    "kill driver",
    "freeze driver",
    "start driver",
    "lose executor",
    "stop query",
    "collect garbage",
    "expire session",
)
LATE_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class Profile:
    """What kind of world it is.

    Args:
        layout: stages, operators and stores of the query.
        parallelism: of all operators.
        batches: how many there are to do.
        settings: of the coordinator.
        faults: of the storage.
        incidents: how many there are.
        weights: of the kinds of incidents; those that are not named do not happen.
        large: chance that a segment is in a file that a task writes.
        speculation: chance that a second attempt of a task is started beside the first.
        twice: chance that a batch runs its stages twice.
        fetch_failure: chance that a stage is attempted again.
        lost_events: chance that the end of a task is not reported.
        executors: of each driver.
        checkpoint_format: 2 if Spark's commit log names the ids of the states.
        store: of completed checkpoints, `filesystem` or `zookeeper`.
        is_remote: whether a request to the storage is dear.
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

    @staticmethod
    def of(rng: random.Random) -> Profile:
        """A random one. Quiet parts are as likely as wild ones, so that rare things are seen alone as well."""
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
        if checkpoint_format == 2:
            # One driver at a time: of two that complete one version, Spark may commit the ids of the one that lost.
            faults.kill = 0.0
            weights = {what: 1.0 for what in INCIDENTS if what not in ("freeze driver", "start driver")}
        return Profile(
            layout=rng.choice(("one", "one", "stores", "operators", "stages")),
            parallelism=rng.choice((1, 2, 2, 3)),
            batches=rng.randint(3, 7),
            settings={
                "retained": str(rng.choice((1, 2, 2, 3, 5))),
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
            store=rng.choice(("filesystem", "filesystem", "filesystem", "zookeeper")),
            is_remote=rng.choice((False, True)),
        )

    def query(self, seed: int) -> Query:
        def operator(number: int, *stores: str) -> Operator:
            return Operator(number, "stateStoreSave", stores, self.parallelism, 2)

        stages = {
            "one": ((operator(0, "default"),),),
            "stores": ((operator(0, "left", "right"),),),
            "operators": ((operator(0, "default"), operator(1, "default")),),
            "stages": ((operator(0, "default"),), (operator(1, "default"),)),
        }[self.layout]
        return Query(seed, stages, 4 * self.parallelism)


class World:
    """One schedule.

    Args:
        seed: of everything.
        profile: instead of one drawn from the seed.
    """

    def __init__(self, seed: int, profile: Profile | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        drawn = Profile.of(self.rng)
        self.profile = profile or drawn
        self.faults = replace(self.profile.faults)
        self.query = self.profile.query(seed)
        self.batches = self.profile.batches
        self.counts: Counter[str] = Counter()
        self.log: list[str] = []
        self.scheduler = Scheduler(self.rng)
        self.disk, self.ensemble = Disk(self.scheduler.now_ms), Ensemble()
        self.sessions: list[tuple[Group, SimulatedSession]] = []
        self.late = Late(self.scheduler)
        self.checks = Checks(self)
        self.disk.observer = self.ensemble.observer = self.checks
        self.drivers: list[Driver] = []
        self._calm = False
        self._started = 0
        self._outside = Group("outside")

    # ---- what its parts use ------------------------------------------------------------------------------------------

    def trace(self, text: str) -> None:
        self.log.append(f"{self.scheduler.now:9.3f}  {text}")

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def way(self, group: Group, faults: Faults) -> Way:
        return Way(group, self.scheduler, self.rng, faults, self.late, self._fault, self._killed_on_the_way)

    def storage(self, group: Group) -> Storage:
        """The storage as a process sees it."""
        return SimulatedStorage(self.disk, self.way(group, self.faults), self.profile.is_remote)

    def session(self, quorum: str, timeout: float, clock: Clock) -> ZooKeeperSession:
        """A session of the process that asks for it."""
        group = self.scheduler.current().group
        session = SimulatedSession(self.ensemble, self.way(group, self.faults), quorum, timeout, clock)
        self.sessions.append((group, session))
        return session

    def starts_again(self, ending: Ending, why: str) -> bool:
        """Whether whoever runs the query starts it again in the same driver."""
        if ending is Ending.STOPPED:
            return not self._calm
        if "FencedError" in why:
            return not self._calm and self.rng.random() < 0.2
        return self.rng.random() < 0.7

    # ---- its life ----------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Plays the schedule to its end.

        Raises:
            Violation: an invariant does not hold.
            Stuck: the query cannot be brought to its end.
        """
        with _same_ids(self.rng), patch("spark_ckpt.coordinator.stores.ZooKeeperSession", self.session):
            try:
                self._start_driver()
                self.scheduler.spawn("incidents", self._outside, self._incidents)
                self.scheduler.run(lambda: self._calm)
                self._finish()
                # Once more, with one batch more: its claim finds what the others have left behind.
                self.batches += 1
                self.profile = replace(self.profile, speculation=0.0, twice=0.0, fetch_failure=0.0, lost_events=0.0)
                self._start_driver()
                self._finish()
                self.checks.at_the_end()
            finally:
                self.scheduler.close()
        self.counts["batches"] += self.batches

    def _finish(self) -> None:
        """All drivers come to their end, and all requests to theirs; another driver does what is left."""
        self.scheduler.run(lambda: not self._alive())
        self._wait(LATE_SECONDS)
        for _ in range(MOST_LAST_DRIVERS):
            if self.disk.read(f"commits/{self.batches - 1}") is not None:
                return
            self._start_driver()
            self.scheduler.run(lambda: not self._alive())
            self._wait(LATE_SECONDS)
        raise Stuck(f"batch {self.batches - 1} cannot be committed, although nothing goes wrong any more")

    def _wait(self, seconds: float) -> None:
        over: list[bool] = []
        self.scheduler.spawn("wait", self._outside, lambda: over.append(True), seconds)
        self.scheduler.run(lambda: bool(over))

    def _alive(self) -> list[Driver]:
        return [driver for driver in self.drivers if driver.group.alive and not driver.ended]

    def _start_driver(self) -> Driver:
        self._started += 1
        driver = Driver(self, f"driver{self._started}", self.rng)
        self.drivers.append(driver)
        self.trace(f"{driver.group.name} starts")
        return driver

    # ---- what goes wrong ---------------------------------------------------------------------------------------------

    def _incidents(self) -> None:
        for _ in range(self.profile.incidents):
            self.scheduler.sleep(self.rng.expovariate(0.5))
            alive = self._alive()
            if not alive:
                self._start_driver()
                continue
            weights = self.profile.weights
            (what,) = self.rng.choices(list(weights), list(weights.values()))
            self._incident(what, self.rng.choice(alive))
        self.scheduler.sleep(self.rng.random() * 10)
        self._calm = True
        self.faults.error = self.faults.error_after = self.faults.late = self.faults.exists = self.faults.kill = 0.0
        self.trace("nothing more goes wrong from here on")

    def _incident(self, what: str, driver: Driver) -> None:
        if what == "start driver" and len(self._alive()) >= MOST_DRIVERS:
            return
        self.count(what)
        self.trace(f"{what} ({driver.group.name})")
        if what == "kill side process":
            driver.bridge.kill_process()
        elif what == "kill driver":
            self.scheduler.kill(driver.group)
            self._start_driver()
        elif what == "freeze driver":
            driver.group.frozen_until = self.scheduler.now + self.rng.expovariate(0.1)
            if len(self._alive()) < MOST_DRIVERS:
                self._start_driver()
        elif what == "start driver":
            self._start_driver()
        elif what == "lose executor":
            driver.lose_executor()
        elif what == "stop query":
            driver.stop_run()
        elif what == "collect garbage":
            oldest = min(d.oldest() for d in self._alive())
            group = Group("collector")
            self.scheduler.spawn("collector", group, lambda: self._collect(group, self.scheduler.now - oldest))
        else:
            for group, session in self.sessions:
                if group.belongs_to(driver.group):
                    session.expire()

    def _collect(self, group: Group, busy_seconds: float) -> None:
        """`spark-ckpt gc` with the shortest grace time that is right: a moment longer than what is under way."""
        try:
            collection = collect_garbage(
                self.storage(group), grace_seconds=max(0.0, busy_seconds) + 0.01, clock=self.scheduler
            )
        except (StorageError, CollectionRefusedError) as e:
            # The files may lag behind ZooKeeper, and name a checkpoint that is dropped; nothing else can be wrong.
            lags = self.profile.store == "zookeeper"
            if not lags and not isinstance(e, StorageError) and not isinstance(e.__cause__, StorageError):
                raise
            self.count(f"garbage not collected: {type(e).__name__}")
        else:
            self.counts["garbage collected"] += len(collection.orphans)

    def _fault(self, what: str) -> None:
        self.count(what)
        actor = self.scheduler.current()
        self.trace(f"{actor.group.name}, {actor.name}: {what}")

    def _killed_on_the_way(self, group: Group) -> None:
        """A side process dies in the middle of a storage operation, alone or with its driver."""
        driver = next((d for d in self.drivers if group.belongs_to(d.group)), None)
        if driver is None:
            self.scheduler.kill(group)
        elif self.rng.random() < 0.7:
            driver.bridge.kill_process()
        else:
            self.trace(f"{driver.group.name} dies as well")
            self.scheduler.spawn("supervisor", self._outside, self._start_driver, self.rng.random() * 5)
            self.scheduler.kill(driver.group)


@contextmanager
def _same_ids(rng: random.Random) -> Iterator[None]:
    """Ids that the code under test draws are a function of the seed as well; its log would only take time."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with patch("uuid.uuid4", lambda: uuid.UUID(int=rng.getrandbits(128))):
            yield
    finally:
        logging.disable(before)
