from __future__ import annotations

from spark_ckpt.operations.mirror.throttle import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def now_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_copies_take_as_long_as_the_rate_says() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock)
    for _ in range(20):
        throttle.took(500)
    assert 9 <= clock.now <= 10


def test_an_idle_hour_earns_a_second() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock)
    clock.now = 3600
    throttle.took(3000)
    assert clock.now == 3602


def test_without_a_rate_there_is_no_pause() -> None:
    clock = Clock()
    Throttle(None, clock).took(10**12)
    assert clock.now == 0
