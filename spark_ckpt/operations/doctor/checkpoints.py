"""Checks of the checkpoints: how recent, how long the chains, which failures."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus
from spark_ckpt.compaction.policy import chain_bound
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.figures import count, human_duration, human_size, iso_time
from spark_ckpt.location.driver_liveness import Liveness
from spark_ckpt.operations.advice import Step
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.doctor.findings import Finding, Status, command_line

LAST_CHECKPOINT = "last checkpoint"
CHAINS = "chains"
FAILURES = "failures"

_LATE_FACTOR = 3
"""Multiple of the longest recent interval after which the next checkpoint counts as late."""
_LATE_MS = 60_000
"""Milliseconds before which no checkpoint counts as late."""
_RECENT = 10
"""Number of checkpoints whose intervals and failures count as recent."""
_NONE_YET = "no checkpoint has completed yet"


def check_last_checkpoint(evidence: Evidence) -> Iterator[Finding]:
    """The newest checkpoint, and its age beside the recent intervals."""
    newest = evidence.newest
    if newest is None:
        yield Finding(LAST_CHECKPOINT, Status.OK, _NONE_YET, data={"id": None})
        return
    age_ms = evidence.now_ms - newest.timestamp_ms
    intervals = _intervals([record.timestamp_ms for record in evidence.checkpoints])
    median = round(statistics.median(intervals)) if intervals else None
    data = {
        "id": newest.id,
        "batch_id": newest.batch_id,
        "completed": iso_time(newest.timestamp_ms),
        "age_ms": age_ms,
        "duration_ms": newest.duration_ms,
        "median_interval_ms": median,
        "longest_interval_ms": max(intervals, default=None),
    }
    answer = f"checkpoint {newest.id}, batch {newest.batch_id}, completed {iso_time(newest.timestamp_ms)}"
    answer += f", {human_duration(age_ms)} ago" if age_ms >= 0 else ", in the future by this machine's clock"
    answer += f", in {human_duration(newest.duration_ms)}" if newest.duration_ms else ""
    if median is not None:
        answer += f"; the last {len(intervals) + 1} came every {human_duration(median)}"
    if _is_late(age_ms, intervals) and not evidence.is_savepoint and evidence.last_driver.liveness is not Liveness.NONE:
        yield Finding(
            LAST_CHECKPOINT,
            Status.WARNING,
            f"{answer}, and none since",
            Step.LATE.say(),
            command_line("list", evidence.location, "--sources"),
            data,
        )
    else:
        yield Finding(LAST_CHECKPOINT, Status.OK, answer, data=data)


def check_chains(evidence: Evidence) -> Iterator[Finding]:
    """Length of the chains, and the bytes that a restart reads."""
    if (state := evidence.state) is None:
        yield Finding(CHAINS, Status.OK, _NONE_YET)
        return
    chains = [chain for each in state.table.values() for chain in each]
    longest = max((chain.deltas for chain in chains), default=0)
    size, bases = sum(chain.size for chain in chains), sum(chain.base_bytes for chain in chains)
    bound = chain_bound(CheckpointConfig())
    data = {"longest": longest, "bytes": size, "base_bytes": bases, "subtasks": len(chains)}
    answer = (
        f"at most {count(longest, 'delta')} after a base; a restart reads {human_size(size)}, of which bases are "
        f"{human_size(bases)}"
    )
    if longest > bound:
        yield Finding(
            CHAINS,
            Status.WARNING,
            f"{answer}; by default a chain has at most {bound} deltas",
            Step.LONG_CHAINS.say(),
            command_line("history", evidence.location),
            data,
        )
    else:
        yield Finding(CHAINS, Status.OK, answer, data=data)


def check_failures(evidence: Evidence) -> Iterator[Finding]:
    """Recent failures and retries in the history of the newest checkpoint."""
    if (state := evidence.state) is None:
        yield Finding(FAILURES, Status.OK, _NONE_YET)
        return
    recent = state.history[-_RECENT:]
    if not recent:
        yield Finding(FAILURES, Status.UNKNOWN, "the newest checkpoint has no statistics")
        return
    reasons, aborted = _failures(recent)
    data = {"checkpoints": len(recent), "aborted": len(aborted), "reasons": dict(reasons)}
    if not reasons and not aborted:
        yield Finding(FAILURES, Status.OK, f"none in the last {count(len(recent), 'checkpoint')}", data=data)
        return
    parts = [f"{reason}: {number:,}" for reason, number in reasons.most_common()]
    parts += [f"last abort, of batch {aborted[-1].batch_id}: {aborted[-1].detail}"] if aborted else []
    yield Finding(
        FAILURES,
        Status.WARNING,
        f"{len(aborted):,} of the last {count(len(recent), 'checkpoint')} aborted; {'; '.join(parts)}",
        Step.SEE_FAILURES.say(),
        command_line("history", evidence.location),
        data,
    )


def _failures(recent: Sequence[CheckpointStats]) -> tuple[Counter[str], list[CheckpointStats]]:
    reasons: Counter[str] = Counter()
    for stats in recent:
        reasons.update(stats.failures)
    return reasons, [stats for stats in recent if stats.status is CheckpointStatus.FAILED]


def _intervals(times: Sequence[int]) -> list[int]:
    """Milliseconds between the recent times."""
    return [after - before for before, after in pairwise(times[-_RECENT:]) if after >= before]


def _is_late(age_ms: int, intervals: Sequence[int]) -> bool:
    return bool(intervals) and age_ms > max(_LATE_MS, _LATE_FACTOR * max(intervals))
