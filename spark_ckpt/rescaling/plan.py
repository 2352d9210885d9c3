"""The plan of a rescale, or its refusal, from Spark's logs and the checkpoint. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_ckpt.checkpoint.batch import SparkBatch, StoreState
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.rescaling.errors import RescaleRefusedError
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.operators import GLOBAL_LIMIT, HASHED, JOIN, SESSION_WINDOW, TRANSFORM_WITH_STATE

STRICT_DISTRIBUTION = "spark.sql.streaming.statefulOperator.useStrictDistribution"
"""False in queries started before Spark 3.3: the hash of a row's key need not match its partition."""

_KEY_COLUMNS_NOT_HASHED = {SESSION_WINDOW: 1}


@dataclass(frozen=True, slots=True)
class RescalePlan:
    """The plan of a rescale.

    Args:
        batch_id: the batch of the rescale in Spark's logs.
        before: number of partitions before.
        after: number of partitions after.
        offsets: the batch's entry of the offset log.
    """

    batch_id: int
    before: int
    after: int
    offsets: OffsetEntry


def plan_rescale(
    location: str,
    partitions: int,
    committed: int,
    offsets: OffsetEntry,
    batch: SparkBatch,
    begun: OffsetEntry | None = None,
) -> RescalePlan:
    """Checks that the location can be rescaled.

    The rules are those of Spark's own repartition (`OfflineStateRepartitionRunner`): the last batch must be committed,
    unless it is the same rescale, interrupted.

    Args:
        location: the checkpoint location, for errors.
        partitions: requested number of partitions.
        committed: the last committed batch.
        offsets: its entry of the offset log.
        batch: the batch, from its checkpoint.
        begun: entry of the offset log for the next batch, if it has begun.

    Raises:
        RescaleRefusedError: the rescale is impossible.
    """

    def refused(reason: str) -> RescaleRefusedError:
        return RescaleRefusedError(location, partitions, reason)

    if not 1 <= partitions <= batch.max_parallelism:
        raise refused(
            f"the query has a fixed number of {batch.max_parallelism} key groups, and a partition needs at least one: "
            f"choose 1 to {batch.max_parallelism}"
        )
    before = offsets.shuffle_partitions or max((store.parallelism for store in batch.stores), default=0)
    if offsets.metadata is None:
        raise refused(f"offsets/{committed} was written by an old Spark and lacks the settings of the query")
    if begun is not None:
        number = begun.shuffle_partitions
        if number in (None, before) or begun != offsets.with_shuffle_partitions(number or 0):
            raise refused(
                f"batch {committed + 1} has begun but is not committed. Start the query, let it finish that "
                "batch, and stop it between two batches"
            )
        if number != partitions:
            raise refused(f"a rescale to {number} was interrupted: finish that one first")
    if before == partitions:
        raise refused("it has this number of partitions already")
    if offsets.conf.get(STRICT_DISTRIBUTION) == "false":
        raise refused(f"{STRICT_DISTRIBUTION} is false, so the hash of a key need not determine its partition")
    for store in batch.stores:
        if store.name not in (*HASHED, GLOBAL_LIMIT):
            raise refused(f"Spark does not record the partitioning key of {store.name} (operator {store.operator_id})")
        if store.parallelism not in (1, before):
            raise refused(f"{store.key} has {store.parallelism} partitions, but the query has {before}")
    return RescalePlan(committed + 1, before, partitions, offsets.with_shuffle_partitions(partitions))


def runs_alone(store: StoreState, before: int, key_columns: Callable[[StoreKey], int]) -> bool:
    """True if an operator runs as one task for any number of partitions: a limit, or an operator without a key.

    Args:
        store: one of its stores.
        before: number of partitions of the query; if it is 1, only the schema tells.
        key_columns: number of columns of the keys of a store.
    """
    if store.name == GLOBAL_LIMIT or store.parallelism != before:
        return True
    if before > 1 or store.name in (JOIN, *TRANSFORM_WITH_STATE):
        return False
    return key_columns(store.key) <= _KEY_COLUMNS_NOT_HASHED.get(store.name, 0)
