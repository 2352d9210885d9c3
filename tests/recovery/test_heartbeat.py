from __future__ import annotations

from spark_ckpt.clock import SystemClock
from spark_ckpt.recovery.heartbeat import Heartbeat


class SetClock(SystemClock):
    def __init__(self) -> None:
        self.time = 100.0

    def monotonic(self) -> float:
        return self.time


def test_several_times_within_the_timeout_and_no_more() -> None:
    clock, told = SetClock(), list[float]()
    heartbeat = Heartbeat(lambda: told.append(clock.time), clock, timeout=10)
    for _ in range(20):
        heartbeat()
        clock.time += 1
    assert told == [100.0 + 2 * i for i in range(10)]


def test_not_without_progress() -> None:
    clock, told = SetClock(), list[float]()
    heartbeat = Heartbeat(lambda: told.append(clock.time), clock, timeout=10)
    clock.time += 1000
    assert told == []
    heartbeat()
    heartbeat()
    assert told == [1100.0]


def test_at_least_each_half_minute() -> None:
    clock, told = SetClock(), list[float]()
    heartbeat = Heartbeat(lambda: told.append(clock.time), clock, timeout=3600)
    for _ in range(61):
        heartbeat()
        clock.time += 1
    assert told == [100.0, 130.0, 160.0]
