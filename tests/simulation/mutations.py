"""Deliberate mistakes in the real code, each of which the simulation must find by an invariant."""

from __future__ import annotations

from tests.simulation.mutation import Mutation
from tests.simulation.mutations_of_acks import ACKS
from tests.simulation.mutations_of_deleting import DELETING
from tests.simulation.mutations_of_log import LOG
from tests.simulation.mutations_of_order import ORDER
from tests.simulation.mutations_of_real_time import REAL_TIME_STEPS
from tests.simulation.mutations_of_rollbacks import ROLLBACKS

MUTATIONS: dict[str, Mutation] = ORDER | LOG | ACKS | DELETING | REAL_TIME_STEPS | ROLLBACKS
"""All mistakes, by name."""
