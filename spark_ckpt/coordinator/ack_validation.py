"""Validation of acks."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.errors import StateIdMismatchError
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.compaction.adoption import adoptable
from spark_ckpt.compaction.state_ids import StateIds
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.errors import CheckpointError, ProtocolError
from spark_ckpt.format.key_groups import key_group_span, overlap
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import Ack
from spark_ckpt.storage.errors import PathEscapeError
from spark_ckpt.storage.paths import is_state_path

_log = logging.getLogger(__name__)


def check_ack(ack: Ack, parallelism: int, job: OpenJob, chain: Chain | None, ids: StateIds) -> Ack:
    """Valid ack, without its base or merged delta if that cannot be used.

    Args:
        ack: ack as received.
        parallelism: number of subtasks of its operator.
        job: open job.
        chain: chain of the subtask in the parent checkpoint; None without a parent.
        ids: state ids that count.

    Raises:
        StateIdMismatchError: the delta is based on another state than the parent checkpoint's.
        CheckpointError: the file of the delta was deleted.
        PathEscapeError: a file outside the checkpoint's own directory.
        ProtocolError: key groups that the subtask does not own.
    """
    if ack.base_state_id is not None and chain is not None and ack.base_state_id != chain.state_id:
        raise StateIdMismatchError(
            f"{ack.subtask}: the delta of batch {ack.batch_id} is based on state {ack.base_state_id}, but version "
            f"{ack.version - 1} has state {chain.state_id}. Run the task again: it loads that state"
        )
    _check_segment(ack, ack.delta, parallelism, job)
    if ack.delta.path is not None and _was_deleted(ack.delta, job):
        raise CheckpointError(f"{ack.subtask}: file {ack.delta.path} was discarded with an earlier attempt")
    for brought in (ack.base, ack.merged):
        if brought is not None:
            _check_segment(ack, brought.segment, parallelism, job)
    ack, ignored = adoptable(ack, chain, ids, lambda segment: _was_deleted(segment, job))
    for what, reason, segment in ignored:
        _log.info("%s: ignoring %s: %s", ack.subtask, what, reason)
        if segment.path is not None and segment.path not in job.registry:
            job.cleaner.submit([in_location(segment.path)])
    return ack


def _was_deleted(segment: SegmentRef, job: OpenJob) -> bool:
    return segment.path is not None and job.cleaner.was_submitted(in_location(segment.path))


def _check_segment(ack: Ack, segment: SegmentRef, parallelism: int, job: OpenJob) -> None:
    if segment.path is not None and not is_state_path(segment.path):
        raise PathEscapeError(segment.path, job.storage.describe(in_location("shared")))
    if segment.key_groups.size:
        _check_range(ack, segment.key_groups, parallelism, job.key_group_factors)


def _check_range(ack: Ack, groups: NDArray[np.uint32], parallelism: int, factors: tuple[int, ...]) -> None:
    if not overlap(groups, ack.subtask.partition, parallelism, factors):
        span = key_group_span(ack.subtask.partition, parallelism, factors)
        raise ProtocolError(
            f"{ack.subtask}: the segment has key groups {groups[0]} to {groups[-1]}, but the subtask owns only "
            f"{span}: the operator's partitioning differs from that of its state"
        )
