"""A complete world, made from a seed: the query, its drivers, the storage, and the faults."""

from __future__ import annotations

import logging
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from spark_ckpt.checkpoint import restore_plan
from spark_ckpt.clock import Clock
from spark_ckpt.compaction import policy, tiers
from spark_ckpt.completed import ClaimRecord
from spark_ckpt.completed.base import MAX_CLAIMS, RecordStore
from spark_ckpt.completed.zookeeper_session import ZooKeeperSession
from spark_ckpt.coordinator import subsumption
from spark_ckpt.errors import LogMissingError, StorageError
from spark_ckpt.migrate import earlier_state
from spark_ckpt.operations.errors import CollectionRefusedError
from spark_ckpt.operations.gc import DEFAULT_GRACE_SECONDS, collect_garbage
from spark_ckpt.storage import Storage
from tests.simulation.checks import Checks
from tests.simulation.clocks import MachineClock
from tests.simulation.damages import DAMAGE, Damages
from tests.simulation.decoder_cache import read_metadata
from tests.simulation.disk import FOREIGN_FILES, Disk, SimulatedStorage
from tests.simulation.ensemble import Ensemble, SimulatedSession
from tests.simulation.faults import Faults, Late, Way
from tests.simulation.inline import InlinePool
from tests.simulation.profile import Profile
from tests.simulation.rollbacks import ROLL_BACK, RollingBack, roll_back
from tests.simulation.scheduler import Group, Scheduler, Stuck
from tests.simulation.spark import Driver, Ending
from tests.simulation.tagging import TAG, remove_failed, tag_or_untag
from tests.support.locations import LocationBuilder

MAX_STEPS = 60_000
MAX_DRIVERS = 3
MAX_LAST_DRIVERS = 12  # local disks still fail, and in real-time mode a failed task ends its run
LATE_SECONDS = 40.0
DAY_SECONDS = 24 * 3600.0


class World:
    """One schedule.

    Args:
        seed: seed of all random choices.
        profile: replaces the profile drawn from the seed.
    """

    def __init__(self, seed: int, profile: Profile | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        # Not drawn, so that each seed keeps its schedule.
        drawn = replace(Profile.of(self.rng), is_lazy=seed % 2 == 1)
        self.profile = profile or drawn
        self.faults = replace(self.profile.faults)
        self.query = self.profile.query(seed)
        self.batches = self.profile.batches
        self.counts: Counter[str] = Counter()
        self.log: list[str] = []
        self.scheduler = Scheduler(self.rng, MAX_STEPS + 50 * self.profile.parallelism)
        self.disk, self.ensemble = Disk(self.scheduler.now_ms), Ensemble()
        self.sessions: list[tuple[Group, SimulatedSession]] = []
        self.late = Late(self.scheduler)
        self.checks = Checks(self)
        self.disk.observer = self.ensemble.observer = self.checks
        self.drivers: list[Driver] = []
        self._calm = False
        self._started = 0
        self.quiet_until = 0.0
        """Time before which no input arrives."""
        self._outside = Group("outside")
        self.query_id = "11111111-2222-3333-4444-555555555555"
        weights = self.profile.weights
        self.rolls_back = bool(self.profile.incidents) and bool(weights.get(ROLL_BACK) or weights.get(DAMAGE))
        """Whether the query is rolled back now and then. Its runs then read and write Spark's logs as Spark does."""
        self.is_rolling_back = False
        self.rolling_back = RollingBack(self)
        self.damages = Damages(self)

    # ---- services for its parts --------------------------------------------------------------------------------------

    def trace(self, text: str) -> None:
        self.log.append(f"{self.scheduler.now:9.3f}  {text}")

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def way(self, group: Group, faults: Faults) -> Way:
        return Way(group, self.scheduler, self.rng, faults, self.late, self._fault, self._killed_on_the_way)

    def storage(self, group: Group) -> Storage:
        """The storage as seen by a process."""
        return SimulatedStorage(self.disk, self.way(group, self.faults), self.profile.is_remote, self.profile.lag)

    def session(self, quorum: str, timeout: float, clock: Clock, security: None) -> ZooKeeperSession:
        """A session of the calling process."""
        group = self.scheduler.current().group
        session = SimulatedSession(self.ensemble, self.way(group, self.faults), quorum, timeout, clock)
        self.sessions.append((group, session))
        return session

    @property
    def is_calm(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self._calm

    def starts_again(self, ending: Ending, why: str) -> bool:
        """True if the query's user starts it again in the same driver."""
        if self.checks.is_discarded:
            return False
        if ending is Ending.STOPPED:
            return not self._calm
        if "FencedError" in why:
            return not self._calm and self.rng.random() < 0.2
        return self.rng.random() < 0.7

    def go_back(self) -> None:
        """Follows the advice of `docs/limits.md` after a commit by a run that was fenced off: removes the commit, so
        that the batch is repeated."""
        if self.checks.may_go_back():
            self.count("commit of a fenced run")
            self.disk.directories["commits"].pop(str(self.checks.went_back()))

    @property
    def _surplus_claims(self) -> Callable[..., list[ClaimRecord]]:
        """The real method with a lower limit: its own keeps more claims than a schedule makes."""
        real, fewer = RecordStore._surplus_claims, MAX_CLAIMS - self.profile.claims_kept

        def surplus(store: RecordStore, retained: int = MAX_CLAIMS) -> list[ClaimRecord]:
            return real(store, retained - fewer)

        return surplus

    # ---- lifecycle ---------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Plays the schedule to its end.

        Raises:
            Violation: an invariant does not hold.
            Stuck: the query does not reach its end.
        """
        with (
            _same_ids(self.rng),
            patch("spark_ckpt.location.open_store.ZooKeeperSession", self.session),
            patch("spark_ckpt.checkpoint.state_files.ThreadPoolExecutor", InlinePool),
            patch.object(RecordStore, "_surplus_claims", self._surplus_claims),
            self.rolling_back.noted(),
            patch("spark_ckpt.checkpoint.load.loads", read_metadata),
            patch.object(subsumption, "GATHERED", self.profile.gathered or subsumption.GATHERED),
            patch.object(policy, "SMALL_BYTES", self.profile.small_bytes or policy.SMALL_BYTES),
            patch.object(tiers, "MIN_BASE", 0 if self.profile.merges else tiers.MIN_BASE),
            patch.object(restore_plan, "MIN_LAZY_ROWS", 0 if self.profile.is_lazy else restore_plan.MIN_LAZY_ROWS),
        ):
            try:
                if self.profile.foreign:
                    for name in FOREIGN_FILES:
                        self.disk.write(name, b"not ours")
                if self.rolls_back:
                    self._write_spark_files()
                self._start_driver()
                self.scheduler.spawn("incidents", self._outside, self._incidents)
                self.scheduler.run(lambda: self._calm or self.checks.is_discarded)
                if self.checks.is_discarded or not self._finish():
                    self._end_without_checkpoints()
                    if not self._starts_over():
                        return
                remove_failed(self)
                self._wait(LATE_SECONDS)  # listings may show them for a while
                # A last run with one more batch: its claim finds everything left behind by the others.
                self.batches += 1
                # Nothing fails in it: an attempt that is killed too late would leave a file for the claim after it.
                self.profile = replace(
                    self.profile, speculation=0.0, twice=0.0, fetch_failure=0.0, lost_events=0.0, local_disk=0.0
                )
                self._start_driver()
                if self._finish():
                    self.checks.at_the_end()
                else:
                    self._end_without_checkpoints()
            finally:
                self.scheduler.close()
        self.counts["batches"] += self.batches

    def _write_spark_files(self) -> None:
        """Writes what Spark writes once, which a query that rolls itself back verifies."""
        builder = LocationBuilder(SimulatedStorage(self.disk, self.way(self._outside, Faults(pause=0)))).query(
            self.query_id
        )
        for operator in self.query.operators:
            builder.operator(operator.operator_id, operator.name, operator.stores, operator.parallelism)

    def _end_without_checkpoints(self) -> None:
        """Checks what remains after the final end of a query that retains no checkpoints."""
        self._wait(LATE_SECONDS)
        profile = self.profile
        nothing_failed = not profile.incidents and not profile.faults.any() and not profile.faults.kill
        self.checks.after_discarding(nothing_failed)

    def _starts_over(self) -> bool:
        """Deletes Spark's logs and starts from the first batch. Without a log there is no counter of the ids.

        Returns:
            True if the query could continue from its end.
        """
        if self.profile.store == "standalone":
            return False
        self.scheduler.run(lambda: self._calm and self._nobody_lives())
        self.count("started over")
        self.disk.directories.pop("commits", None)
        self.disk.directories.pop("offsets", None)
        self.checks.starts_over()
        self.profile = replace(self.profile, settings=self.profile.settings | {"cleanup": "retain"})
        self._start_driver()
        return self._finish()

    def _finish(self) -> bool:
        """Waits for all drivers and requests to end; further drivers do the remaining work.

        Returns:
            True if the query could continue from here.
        """
        self.scheduler.run(self._nobody_lives)
        self._wait(LATE_SECONDS)
        for number in range(MAX_LAST_DRIVERS + 1):
            if number:
                self._start_driver()
                self.scheduler.run(self._nobody_lives)
                self._wait(LATE_SECONDS)
            if self.checks.is_discarded:
                return False
            if self.disk.read(f"commits/{self.batches - 1}") is not None:
                return True
        raise Stuck(f"batch {self.batches - 1} cannot be committed, although nothing goes wrong any more")

    def _wait(self, seconds: float) -> None:
        over: list[bool] = []
        self.scheduler.spawn("wait", self._outside, lambda: over.append(True), seconds)
        self.scheduler.run(lambda: bool(over))

    @property
    def _has_wrong_clocks(self) -> bool:
        return self.profile.weights.get("clock goes wrong", 0) >= 1

    def _alive(self) -> list[Driver]:
        return [driver for driver in self.drivers if driver.group.alive and not driver.ended]

    def _nobody_lives(self) -> bool:
        return all(driver.ended or not driver.group.alive for driver in self.drivers)

    def _start_driver(self) -> Driver:
        self._started += 1
        driver = Driver(self, f"driver{self._started}", self.rng)
        if self._has_wrong_clocks and self.rng.random() < 0.3:
            self.count(f"clock: {driver.clock.go_wrong(self.rng)}")
        self.drivers.append(driver)
        self.trace(f"{driver.group.name} starts")
        return driver

    # ---- faults and incidents ----------------------------------------------------------------------------------------

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
        self.damages.repair()
        self.faults.error = self.faults.error_after = self.faults.late = self.faults.exists = self.faults.kill = 0.0
        self.trace("nothing more goes wrong from here on")

    def _incident(self, what: str, driver: Driver) -> None:
        if what == "start driver" and len(self._alive()) >= MAX_DRIVERS:
            return
        self.count(what)
        self.trace(f"{what} ({driver.group.name})")
        if what == "kill side process":
            driver.bridge.kill_process()
        elif what == "kill driver":
            self.scheduler.kill(driver.group)
            self._start_driver()
        elif what == "freeze driver":
            days = self.rng.choice((0, 0, 0, 8)) * DAY_SECONDS
            driver.group.frozen_until = self.scheduler.now + days + self.rng.expovariate(0.1)
            if len(self._alive()) < MAX_DRIVERS:
                self._start_driver()
        elif what == "start driver":
            self._start_driver()
        elif what == "clock goes wrong":
            self.count(f"clock: {driver.clock.go_wrong(self.rng)}")
        elif what == "quiet days":
            self._quiet_days()
        elif what == DAMAGE:
            self.damages.strike()
        elif what == ROLL_BACK:
            self.scheduler.spawn(what, Group("operator"), lambda: roll_back(self))
        elif what == TAG:
            self.scheduler.spawn(what, Group("operator"), lambda: tag_or_untag(self))
        elif what == "lose executor":
            driver.lose_executor()
        elif what == "stop query":
            driver.stop_run()
        elif what == "collect garbage":
            oldest = min(d.oldest() for d in self._alive())
            group = Group("collector")
            grace = max(0.0, self.scheduler.now - oldest) + 0.01
            self.scheduler.spawn("collector", group, lambda: self._collect(group, grace))
        else:
            for group, session in self.sessions:
                if group.belongs_to(driver.group):
                    session.expire()

    def _quiet_days(self) -> None:
        """Days without input, while pending work completes. Then garbage is collected, as by a cron job."""
        quiet = DAY_SECONDS * self.rng.uniform(0.5, 4)
        self.quiet_until = self.scheduler.now + quiet
        self.scheduler.sleep(quiet - self.rng.random() * 60)
        group = Group("collector")
        self.scheduler.spawn("collector", group, lambda: self._collect(group, DEFAULT_GRACE_SECONDS))

    def _collect(self, group: Group, grace_seconds: float) -> None:
        """Runs `spark-ckpt gc` on a machine whose clock may be wrong. The shortest correct grace time is slightly
        longer than the oldest work in progress."""
        clock = MachineClock(self.scheduler)
        if self._has_wrong_clocks and self.rng.random() < 0.5:
            self.count(f"clock: {clock.go_wrong(self.rng)}")
        try:
            collection = collect_garbage(
                self.storage(group), grace_seconds=grace_seconds, earlier_states=earlier_state, clock=clock
            )
        except (StorageError, CollectionRefusedError, LogMissingError) as e:
            # The files may lag behind ZooKeeper and name a deleted checkpoint, or one is damaged; no other error is
            # acceptable.
            lags = self.profile.store == "zookeeper" or self.damages.is_any
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
        """Kills a side process in the middle of a storage operation, alone or with its driver."""
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
    """Makes ids drawn by the code under test a function of the seed as well, and disables its log to save time."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with patch("uuid.uuid4", lambda: uuid.UUID(int=rng.getrandbits(128))):
            yield
    finally:
        logging.disable(before)
