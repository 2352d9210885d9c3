"""Virtual time, and the choice of the next actor to run: a pure function of the seed.

An actor is a greenlet, so the coordinator's own blocking code can be suspended in the middle of a storage operation, be
overtaken by others there, or never resume.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

START_MS = 1_800_000_000_000
T = TypeVar("T")


class Killed(GreenletExit):
    """The actor's process is gone. Passes through `except Exception`, as SIGKILL would."""


class Stuck(AssertionError):  # noqa: N818
    """The world does not reach its end."""


class Group:
    """An operating system process, or part of one: its actors are killed or frozen together."""

    def __init__(self, name: str, parent: Group | None = None) -> None:
        self.name = name
        self.frozen_until = 0.0
        self._parent = parent
        self._alive = True

    @property
    def alive(self) -> bool:
        return self._alive and (self._parent is None or self._parent.alive)

    def thaws_at(self) -> float:
        return max(self.frozen_until, self._parent.thaws_at() if self._parent else 0.0)

    def belongs_to(self, other: Group) -> bool:
        return self is other or (self._parent is not None and self._parent.belongs_to(other))

    def die(self) -> None:
        self._alive = False


class Actor:
    """One thread of a process."""

    def __init__(self, name: str, group: Group, body: Callable[[], object], hub: greenlet) -> None:
        self.name, self.group = name, group
        self.greenlet = greenlet(body, hub)
        self.resumed = 0  # a wake-up for an earlier wait is ignored


class Scheduler:
    """The clock, and the queue of scheduled actors.

    Args:
        rng: draws delays and breaks ties.
        steps: number of switches after which the world counts as stuck.
    """

    def __init__(self, rng: random.Random, steps: int = 60_000) -> None:
        self.now = 0.0
        self.steps = 0
        self._rng = rng
        self._most = steps
        self._queue: list[tuple[float, float, int, Actor, int]] = []
        self._count = 0
        self._hub = getcurrent()
        self._actors: dict[greenlet, Actor] = {}

    def spawn(self, name: str, group: Group, body: Callable[[], object], delay: float = 0.0) -> Actor:
        actor = Actor(name, group, body, self._hub)
        self._actors[actor.greenlet] = actor
        self.wake(actor, delay)
        return actor

    def wake(self, actor: Actor, delay: float = 0.0) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now + delay, self._rng.random(), self._count, actor, actor.resumed))

    def current(self) -> Actor:
        return self._actors[getcurrent()]

    def sleep(self, seconds: float) -> None:
        """Suspends the calling actor for this time."""
        self.wake(self.current(), seconds)
        self.park()

    def park(self) -> None:
        """Suspends the calling actor until another one wakes it."""
        if not self.current().group.alive:
            raise Killed
        self._hub.switch()

    def kill(self, group: Group) -> None:
        """Ends the process at once: its actors unwind, and can no longer change the world."""
        group.die()
        me = getcurrent()
        for actor in [a for a in self._actors.values() if a.group.belongs_to(group)]:
            if actor.greenlet is not me:
                self._end(actor)
        if me in self._actors and self._actors[me].group.belongs_to(group):
            raise Killed

    def run(self, until: Callable[[], bool]) -> None:
        """Runs the actors until a condition holds.

        Raises:
            Stuck: no actor is scheduled, or the run takes too many steps.
        """
        while not until():
            if not self._queue:
                raise Stuck("nobody has anything left to do, and the queries are not finished")
            self.steps += 1
            if self.steps > self._most:
                raise Stuck(f"the queries are not finished after {self._most} steps")
            at, tie, count, actor, resumed = heapq.heappop(self._queue)
            if actor.greenlet.dead or not actor.group.alive or resumed != actor.resumed:
                continue
            if (thaw := actor.group.thaws_at()) > at:
                heapq.heappush(self._queue, (thaw, tie, count, actor, resumed))
                continue
            self.now = max(self.now, at)
            actor.resumed += 1
            actor.greenlet.switch()
            if actor.greenlet.dead:
                self._actors.pop(actor.greenlet, None)

    def close(self) -> None:
        """Ends all actors."""
        for actor in list(self._actors.values()):
            actor.group.die()
            self._end(actor)

    def _end(self, actor: Actor) -> None:
        if actor.greenlet and not actor.greenlet.dead:
            actor.greenlet.parent = getcurrent()
            actor.greenlet.throw(Killed)
        self._actors.pop(actor.greenlet, None)

    # ---- the clock of the code under test ----------------------------------------------------------------------------

    def now_ms(self) -> int:
        return START_MS + int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now


class Mailbox(Generic[T]):
    """A queue with a single consumer."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: deque[T] = deque()
        self._waiting: Actor | None = None

    def put(self, item: T) -> None:
        self._items.append(item)
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._scheduler.wake(waiting)

    def get(self, seconds: float | None = None) -> T | None:
        """The next item; None after this many seconds without one."""
        deadline = None if seconds is None else self._scheduler.now + seconds
        while not self._items:
            self._waiting = self._scheduler.current()
            if deadline is not None:
                if self._scheduler.now >= deadline:
                    self._waiting = None
                    return None
                self._scheduler.sleep(deadline - self._scheduler.now)
            else:
                self._scheduler.park()
        self._waiting = None
        return self._items.popleft()


class Promise(Generic[T]):
    """A value that arrives later, for any number of waiting actors."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._values: list[T] = []
        self._waiting: list[Actor] = []

    def set(self, value: T) -> None:
        self._values.append(value)
        for actor in self._waiting:
            self._scheduler.wake(actor)

    def wait(self, seconds: float) -> T | None:
        """The value; None if it does not arrive within this many seconds."""
        deadline = self._scheduler.now + seconds
        while not self._values and self._scheduler.now < deadline:
            self._waiting.append(self._scheduler.current())
            self._scheduler.sleep(deadline - self._scheduler.now)
        return self._values[0] if self._values else None
