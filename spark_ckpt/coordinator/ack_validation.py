"""Validation of acks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.compose import key_group_span
from spark_ckpt.checkpoint.errors import StateIdMismatchError
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.coordinator.merges import useless
from spark_ckpt.coordinator.messages import Ack, BaseSnapshot, Segment
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.errors import CheckpointError, ProtocolError
from spark_ckpt.format.key_groups import overlapping_ranges
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.metadata.keyrange import KeyGroupRange
from spark_ckpt.storage.errors import PathEscapeError
from spark_ckpt.storage.paths import is_state_path

_log = logging.getLogger(__name__)


def check_ack(
    ack: Ack,
    parallelism: int,
    job: OpenJob,
    chain: Chain | None,
    ids_of: Callable[[int], dict[StoreKey, list[str]] | None],
) -> Ack:
    """Valid ack, without its base or merged delta if that cannot be used.

    Args:
        ack: ack as received.
        parallelism: number of subtasks of its operator.
        job: open job.
        chain: chain of the subtask in the parent checkpoint; None without a parent.
        ids_of: state ids of a completed version, by store and partition; None if unknown.

    Raises:
        StateIdMismatchError: the delta is based on another state than the parent checkpoint's.
        ProtocolError, PathEscapeError: its segments violate docs/protocol.md.
    """
    if ack.base_state_id is not None and chain is not None and ack.base_state_id != chain.state_id:
        raise StateIdMismatchError(
            f"{ack.subtask}: the delta of batch {ack.batch_id} is based on state {ack.base_state_id}, but version "
            f"{ack.version - 1} has state {chain.state_id}. Run the task again: it loads that state"
        )
    _check_segment(ack, ack.delta, parallelism, job)
    if ack.base is not None:
        _check_segment(ack, ack.base.segment, parallelism, job)
        if (reason := _useless(ack, ack.base, chain, ids_of) or _deleted(ack.base.segment, job)) is not None:
            _ignore(ack, f"the base snapshot of version {ack.base.version}", reason, ack.base.segment, job)
            ack = replace(ack, base=None)
    if ack.merged is not None:
        _check_segment(ack, ack.merged.segment, parallelism, job)
        reason = "the ack brings a base" if ack.base is not None else useless(ack.merged, chain)
        if (reason := reason or _deleted(ack.merged.segment, job)) is not None:
            versions = f"{ack.merged.first_version} to {ack.merged.version}"
            _ignore(ack, f"the merged deltas of versions {versions}", reason, ack.merged.segment, job)
            ack = replace(ack, merged=None)
    return ack


def _ignore(ack: Ack, what: str, reason: str, segment: Segment, job: OpenJob) -> None:
    _log.info("%s: ignoring %s: %s", ack.subtask, what, reason)
    if segment.path is not None and segment.path not in job.registry:
        job.cleaner.submit([in_location(segment.path)])


def _deleted(segment: Segment, job: OpenJob) -> str | None:
    """Reason against a segment whose file was deleted; None if it was not."""
    is_deleted = segment.path is not None and job.cleaner.was_submitted(in_location(segment.path))
    return "its file was deleted" if is_deleted else None


def _useless(
    ack: Ack, base: BaseSnapshot, chain: Chain | None, ids_of: Callable[[int], dict[StoreKey, list[str]] | None]
) -> str | None:
    """Reason why a base cannot replace the segments up to its version; None if it can."""
    base_version = chain.base_version if chain else 0
    if not base_version < base.version <= ack.version:
        return f"the chain already has a base of version {base_version}"
    # Rows that such a delta appends to a list may be in the base too.
    if chain is not None and any(
        not entry.is_base and entry.first_version <= base.version < entry.version for entry in chain.entries
    ):
        return "a merged delta has changes of its version and of later ones"
    if base.version == ack.version:
        return None if base.state_id == ack.state_id else f"it has state {base.state_id}, not the acknowledged state"
    ids = (ids_of(base.version) or {}).get(ack.subtask.of_operator)
    if ids is None:
        return "the state id of its version is no longer known"
    counts = ids[ack.subtask.partition]
    return None if base.state_id == counts else f"it has state {base.state_id}, but its version has {counts}"


def _check_segment(ack: Ack, segment: Segment, parallelism: int, job: OpenJob) -> None:
    if segment.path is not None:
        if not is_state_path(segment.path):
            raise PathEscapeError(segment.path, job.storage.describe(in_location("shared")))
        if job.cleaner.was_submitted(in_location(segment.path)):
            raise CheckpointError(f"{ack.subtask}: file {segment.path} was discarded with an earlier attempt")
        if segment.file_size is not None and not 0 <= segment.start <= segment.file_size - segment.size:
            raise ProtocolError(
                f"{ack.subtask}: {segment.size} bytes at offset {segment.start} exceed {segment.path}, which has "
                f"{segment.file_size} bytes"
            )
    groups, offsets = segment.key_groups, segment.offsets
    if not groups.size:
        return
    if not (_ascends(groups) and _ascends(offsets)):
        raise ProtocolError(f"{ack.subtask}: key groups and offsets of a segment must ascend")
    if offsets[0] < 0 or offsets[-1] >= segment.size:
        raise ProtocolError(f"{ack.subtask}: offsets of a segment lie outside its {segment.size} bytes")
    _check_range(ack, groups, parallelism, job.key_group_factors)


def _ascends(numbers: NDArray[np.integer]) -> bool:
    # Most segments have few key groups. For those, a search in the bytes is several times as fast as `all`.
    return b"\0" not in (numbers[1:] > numbers[:-1]).tobytes()


def _check_range(ack: Ack, groups: NDArray[np.uint32], parallelism: int, factors: tuple[int, ...]) -> None:
    span, owned = _owned(ack.subtask.partition, parallelism, factors)
    inside = bool(groups[0] >= span.start and groups[-1] <= span.end)
    if inside and owned is not None:
        inside = bool(np.isin(groups, owned).all())
    if not inside:
        raise ProtocolError(
            f"{ack.subtask}: the segment has key groups {groups[0]} to {groups[-1]}, but the subtask owns only {span}: "
            "the operator's partitioning differs from that of its state"
        )


@lru_cache(maxsize=4096)
def _owned(
    partition: int, parallelism: int, factors: tuple[int, ...]
) -> tuple[KeyGroupRange, NDArray[np.uint32] | None]:
    """First and last key group of a subtask, and all its key groups unless they are contiguous."""
    ranges = overlapping_ranges(partition, parallelism, factors)
    span = key_group_span(partition, parallelism, factors)
    if len(ranges) == 1:
        return span, None
    return span, np.concatenate([np.arange(r.start, r.end + 1, dtype=np.uint32) for r in ranges])
