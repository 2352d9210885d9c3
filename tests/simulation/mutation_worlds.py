"""Kinds of worlds that reveal particular mistakes."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.faults import Faults
from tests.simulation.profile import Profile

IN_DOUBT = Profile(
    faults=Faults(error=0.2, error_after=0.2, late=0.1), large=1.0, settings={"tolerableFailures": "0"}, incidents=4
)
STANDING_STILL = Profile(
    faults=Faults(error_after=0.2, late=0.2, pause=0.6), incidents=8, weights={"freeze driver": 3, "start driver": 3}
)
OVERTAKEN = Profile(
    faults=Faults(pause=0.6),
    incidents=16,
    weights={"kill side process": 3, "freeze driver": 2, "start driver": 2},
    batches=7,
)
TAKING_OVER = Profile(faults=Faults(pause=0.8), incidents=8, weights={"start driver": 1}, batches=8)
MANY_BASES = Profile(large=0.5, speculation=1.0, batches=12, settings={"chain.maxDeltas": "1"}, executors=3)
MERGING = Profile(
    merges=True,
    settings={"inlineThreshold": "0", "chain.maxDeltas": "1", "chain.maxDeltaRatio": "50"},
    large=1.0,
    speculation=0.5,
    batches=14,
)
SLOW = Profile(
    merges=True,
    slow=500,
    settings={"inlineThreshold": "0", "chain.maxDeltas": "4", "chain.maxDeltaRatio": "2"},
    large=0.5,
    executors=1,
    batches=150,
)
"""Bases and merges that take 1 to 500 batches."""

TAGGED = Profile(
    large=1.0,
    incidents=16,
    weights={"tag a checkpoint": 6, "kill driver": 1, "kill side process": 1, "collect garbage": 1},
    settings={"inlineThreshold": "0", "chain.maxDeltas": "2"},
    faults=Faults(pause=0.6),
    batches=10,
)
TAGGED_WHILE_DROPPED = replace(TAGGED, is_remote=True, gathered=1)
"""A dropped checkpoint's files stay for one more batch, in which a command may still read them."""
SHARED_FILES = Profile(large=1.0, speculation=1.0, parallelism=3, settings={"inlineThreshold": "0"})
MANY_ATTEMPTS = Profile(
    speculation=0.5, fetch_failure=0.8, executors=3, layout="stages", faults=Faults(error=0.05), lost_events=0.1
)
KILLED = Profile(incidents=8, weights={"kill side process": 1}, speculation=1.0, executors=3, layout="stores")
IMPATIENT = Profile(settings={"timeout": "1"}, faults=Faults(pause=0.6), layout="stages", parallelism=3)
COLLECTED = Profile(
    incidents=8, weights={"kill driver": 1, "collect garbage": 5}, settings={"inlineThreshold": "0"}, large=0.5
)
WRONG_CLOCKS = Profile(
    faults=Faults(pause=0.6),
    incidents=16,
    weights={"clock goes wrong": 2, "freeze driver": 2, "start driver": 3},
    batches=8,
    claims_kept=1,
)
QUIET = Profile(
    large=1.0,
    incidents=8,
    weights={"quiet days": 3, "lose executor": 1, "kill side process": 1},
    settings={"inlineThreshold": "0", "chain.maxDeltas": "1"},
    is_remote=True,
)
ONE_BATCH = Profile(one_batch=1.0, batches=14, settings={"chain.maxDeltas": "1"})
NODES = Profile(
    store="zookeeper",
    faults=Faults(error_after=0.1, late=0.1),
    incidents=8,
    weights={"freeze driver": 2, "start driver": 3},
)
IDLE = Profile(
    parallelism=4,
    idle=3,
    batches=45,
    settings={"inlineThreshold": "0", "chain.maxDeltas": "4"},
    small_bytes=64,
)
ABORTED = Profile(
    large=1.0,
    incidents=8,
    weights={"kill side process": 1},
    settings={"inlineThreshold": "0", "timeout": "1"},
    is_remote=True,  # other storages: delta files are checked before they are recorded
)
"""Batches outlast their timeout. A side process that dies then has a successor without knowledge of the abort."""
ENDED = Profile(settings={"cleanup": "deleteOnEnd"}, batches=3)
GARBAGE_AND_CLOCKS = Profile(
    large=1.0,
    incidents=16,
    weights={"clock goes wrong": 3, "collect garbage": 6, "kill driver": 1},
    settings={"inlineThreshold": "0", "chain.maxDeltas": "1"},
    is_remote=True,
)
LOST_CREATES = Profile(faults=Faults(error=0.15, exists=0.3), large=1.0, settings={"inlineThreshold": "0"}, incidents=4)
ROLLED_BACK = Profile(
    faults=Faults(pause=0.6),
    incidents=12,
    weights={"roll back": 3, "freeze driver": 2, "start driver": 2, "quiet days": 2, "kill driver": 0.5},
    batches=10,
    settings={"retained": "4"},
)
"""Rollbacks, whatever drivers live, on a file system with rename. On quiet days, earlier drivers wait for input."""
DAMAGED = Profile(
    faults=Faults(pause=0.6),
    incidents=16,
    weights={"damage a checkpoint": 3, "freeze driver": 2, "start driver": 3, "quiet days": 1, "kill driver": 0.5},
    batches=10,
    large=0.5,
    settings={"retained": "4", "onDamage": "rollBack", "inlineThreshold": "0"},
)
"""Checkpoints are damaged, and starts roll back, whatever other drivers live."""

DAMAGED_OFTEN = replace(
    DAMAGED,
    faults=Faults(pause=0.9),
    weights={**DAMAGED.weights, "damage a checkpoint": 6, "start driver": 4},
    settings={**DAMAGED.settings, "retained": "3"},
)
"""Starts often roll back to the checkpoint that a live driver drops next."""

ROLLED_BACK_FAR = replace(
    ROLLED_BACK,
    settings={"retained": "2"},
    faults=Faults(pause=0.9, stall=0.05),
    batches=14,
    incidents=20,
    weights={"roll back": 6, "start driver": 2, "kill driver": 0.5},
)
"""Rollbacks often go back to the checkpoint that a live driver drops next."""
