"""All advice of `doctor` and `verify`, in one place: a test follows each."""

from __future__ import annotations

from enum import Enum


class Step(Enum):
    """What to do next, as a template of its sentence."""

    # ---- damage ------------------------------------------------------------------------------------------------------
    GO_BACK = "Stop the query, go back to checkpoint {checkpoint}, and start the query"
    KEEP_COPY = (
        "The newest checkpoint is whole, and the query starts from it. Older ones are damaged, so keep a copy of it"
    )
    USE_BACKUP = "No checkpoint that was read can be restored: recover the files from a backup, then verify"
    OTHER_SAVEPOINT = "Recover the savepoint from a copy, or use another one"

    # ---- drivers -----------------------------------------------------------------------------------------------------
    START_AGAIN = "See the log of the driver on {host}, then start the query again: it repeats batch {batch}"
    FIRST_ERROR = (
        "The query starts again and again without completing a batch: see the first error in the driver's log, and "
        "make sure that only one supervisor starts it"
    )
    FIRST_BATCH = "See the driver's log for the error of its first batch"
    SEE_HANGS = (
        "See the warnings in the log of the driver on {host} for the times, and whether that machine lacked memory, or "
        "had a file system that did not answer, at these times"
    )

    # ---- checkpoints -------------------------------------------------------------------------------------------------
    LATE = (
        "See whether the sources have new data, which an idle query waits for, and whether a batch hangs in the "
        "driver's log"
    )
    LONG_CHAINS = "If chain.maxDeltas is not set higher on purpose, see which base snapshots fail"
    SEE_FAILURES = "See when checkpoints were aborted or tasks repeated, and why"

    # ---- files and operations ----------------------------------------------------------------------------------------
    COLLECT = "Delete what nothing refers to; the query may run"
    REPEAT_ROLLBACK = "Repeat it: the undo with 'spark-ckpt import --undo', the rollback with"
    REPEAT_CHANGE = "Run '{operation}' again, or take it back with"
    REPEAT_IMPORT = "Repeat the import with the same arguments, or delete the location"
    REPEAT_RESCALE = "Unless the rescale is still running, repeat it"

    # ---- environment -------------------------------------------------------------------------------------------------
    OTHER_PROVIDER = (
        "Unless this is intended, bring the state over with 'spark-ckpt import', or start on a new location"
    )
    UPGRADE = "Upgrade spark-ckpt, wheel and jar together, then examine the location again"
    OTHER_SPARK = "Before an upgrade of spark-ckpt to {release}, move the query to Spark {supported}"
    SET_CLOCKS = (
        "Synchronize the clocks of {host} and of this machine. Checkpoints do not depend on them; ages in lists and "
        "the age of orphans do"
    )
    SET_CLOCK = "Synchronize the clock of this machine"
    MAKE_ROOM = "Make room: at least {size}, enough to write all state once more"
    OTHER_STORAGE = (
        "Move the query to a storage with an exclusive create (docs/storage.md), and run one driver until then"
    )
    STORAGE_ANSWERS = (
        "Check that the storage answers and that the credentials are valid, then examine the location again"
    )

    def say(self, **fields: object) -> Advice:
        """The sentence.

        Args:
            fields: values of its fields.
        """
        return Advice(self, self.value.format(**fields))


class Advice(str):
    """A sentence of advice, made by `Step.say` only.

    Args:
        step: what it advises.
        text: the sentence.
    """

    step: Step

    def __new__(cls, step: Step, text: str) -> Advice:
        """Makes the sentence."""
        advice = super().__new__(cls, text)
        advice.step = step
        return advice
