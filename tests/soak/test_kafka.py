from __future__ import annotations

import random
from collections import Counter

from tests.soak.kafka import BROKER, schedule
from tests.soak.killer import COORDINATOR, DRIVER


def test_all_victims_come_equally_often_and_the_driver_last(rng: random.Random) -> None:
    victims = schedule(30, rng)
    assert Counter(victims) == {DRIVER: 10, COORDINATOR: 10, BROKER: 10}
    assert victims[-1] == DRIVER


def test_a_seed_is_a_schedule() -> None:
    assert schedule(20, random.Random(3)) == schedule(20, random.Random(3)) != schedule(20, random.Random(4))
    assert schedule(1, random.Random(3)) == [DRIVER]
