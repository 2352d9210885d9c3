"""Check of the partitions and key groups of a batch against the checkpoint that it starts from."""

from __future__ import annotations

from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.config import MAX_PARALLELISM, CheckpointConfig
from spark_ckpt.messages import Trigger
from spark_ckpt.recovery.errors import ParallelismChangedError


def check_parallelism(trigger: Trigger, parent: CheckpointState, config: CheckpointConfig) -> None:
    """Check that a batch has the partitions and key groups of the checkpoint it starts from.

    Raises:
        ParallelismChangedError: they differ; the message names both numbers and the remedy.
    """
    if parent.batch is None:
        return
    for operator, before in trigger.rescaled(parent.batch):
        raise ParallelismChangedError(
            f"operator {operator.operator_id} ({operator.name}) has {operator.parallelism} partitions, but its "
            f"state in {trigger.location} has {before}. Set spark.sql.shuffle.partitions to {before}, or "
            f"stop the query and change it with 'spark-ckpt rescale --partitions {operator.parallelism}'"
        )
    fixed, wanted = parent.batch.max_parallelism, config.max_parallelism
    if wanted is not None and wanted != fixed:
        raise ParallelismChangedError(
            f"{MAX_PARALLELISM.key} is {wanted}, but the state has {fixed} key groups, a number that cannot change: "
            f"set it to {fixed} or leave it out"
        )
