"""Checks of the drivers of a location: which one owns it, how often that changed, and whether its coordinator hung."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from spark_ckpt.completed import OPERATION, ClaimRecord, Owner
from spark_ckpt.figures import count, human_duration, iso_time
from spark_ckpt.location.driver_liveness import Liveness
from spark_ckpt.operations.advice import Step
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.doctor.findings import Finding, Status, command_line

DRIVER = "driver"
TAKEOVERS = "takeovers"
COORDINATOR = "coordinator"

_RESTARTS_WITHOUT_CHECKPOINT = 3
"""Claims after the newest checkpoint from which the query counts as restarting without progress."""


def check_driver(evidence: Evidence) -> Iterator[Finding]:
    """Whether a driver is alive, and which one."""
    claims = _claims(evidence)
    if not claims:
        yield _without_claim(evidence)
        return
    claim = claims[-1]
    owner = claim.owner
    data: dict[str, Any] = {
        "holder": evidence.last_driver.liveness.value,
        "owner": asdict(owner),
        "generation": claim.generation,
        "claimed": iso_time(claim.timestamp_ms),
    }
    who = f"{owner}, generation {claim.generation}, since {iso_time(claim.timestamp_ms)}"
    if owner.run_id.startswith(OPERATION):
        yield Finding(DRIVER, Status.OK, f"no driver is running: the last claim is a command's, {who}", data=data)
    elif evidence.last_driver.liveness is Liveness.ALIVE:
        yield Finding(DRIVER, Status.OK, f"alive: {who}", data=data)
    elif evidence.last_driver.liveness is Liveness.UNKNOWN:
        answer = f"its process cannot be seen from here, so look on {owner.host}: {who}"
        yield Finding(DRIVER, Status.UNKNOWN, answer, data=data)
    elif (batch := _unfinished_batch(evidence)) is not None:
        yield Finding(
            DRIVER,
            Status.WARNING,
            f"no driver is running: its process has ended in the middle of batch {batch}: {who}",
            Step.START_AGAIN.say(host=owner.host, batch=batch) if evidence.can_start else None,
            data=data,
        )
    else:
        answer = f"no driver is running: its process has ended between two batches: {who}"
        yield Finding(DRIVER, Status.OK, answer, data=data)


def check_takeovers(evidence: Evidence) -> Iterator[Finding]:
    """Earlier drivers in the log, and claims without a checkpoint since."""
    claims = _claims(evidence)
    if not claims:
        return
    newest = evidence.newest
    without = [claim for claim in claims if newest is None or claim.id > newest.id]
    fenced = claims[-2].owner if len(claims) > 1 else _earlier_owner(evidence, claims[-1])
    data = {
        "claims": claims[-1].generation,
        "claims_since_checkpoint": len(without),
        "fenced": None if fenced is None else asdict(fenced),
    }
    answer = f"{count(claims[-1].generation, 'claim')} so far"
    answer += "" if fenced is None else f"; the one fenced last is {fenced}"
    if len(without) >= _RESTARTS_WITHOUT_CHECKPOINT:
        since = human_duration(evidence.now_ms - without[0].timestamp_ms)
        yield Finding(
            TAKEOVERS,
            Status.WARNING,
            f"{len(without)} claims in {since} without a completed checkpoint; {answer}",
            Step.FIRST_ERROR.say(),
            data=data,
        )
    else:
        yield Finding(TAKEOVERS, Status.OK, answer, data=data)


def check_coordinator(evidence: Evidence) -> Iterator[Finding]:
    """Whether the driver had to replace its side process, the coordinator, because that hung."""
    claims = _claims(evidence)
    if not claims or claims[-1].owner.run_id.startswith(OPERATION):
        return
    hung = claims[-1].hung or 0
    data = {"hung": hung}
    if hung == 0:
        yield Finding(COORDINATOR, Status.OK, "the driver has not found it hanging", data=data)
        return
    yield Finding(
        COORDINATOR,
        Status.WARNING,
        f"before {iso_time(claims[-1].timestamp_ms)} the driver has killed and replaced it {count(hung, 'time')}, "
        "because it gave no sign of life. No checkpoint is lost by that",
        Step.SEE_HANGS.say(host=claims[-1].owner.host),
        data=data,
    )


def _without_claim(evidence: Evidence) -> Finding:
    if evidence.checkpoints:
        answer = "the log has no claims, as with the store 'standalone', so nothing tells whether a driver is running"
        return Finding(DRIVER, Status.UNKNOWN, answer, data={"holder": Liveness.UNKNOWN.value})
    answer = "no driver has claimed the location yet"
    if evidence.batches.started:
        return Finding(
            DRIVER,
            Status.WARNING,
            f"{answer}, although batch {evidence.batches.started[-1]} has begun",
            Step.FIRST_BATCH.say(),
            command_line("verify", evidence.location),
            {"holder": Liveness.NONE.value},
        )
    return Finding(DRIVER, Status.OK, answer, data={"holder": Liveness.NONE.value})


def _claims(evidence: Evidence) -> list[ClaimRecord]:
    return [record for record in evidence.records.values() if isinstance(record, ClaimRecord)]


def _earlier_owner(evidence: Evidence, claim: ClaimRecord) -> Owner | None:
    """Owner of the last record before a claim; its own claim may be gone from the log."""
    before = [record for record in evidence.records.values() if record.id < claim.id]
    return before[-1].owner if before else None


def _unfinished_batch(evidence: Evidence) -> int | None:
    batches = evidence.batches
    if batches.started and batches.started[-1] > batches.last_committed:
        return batches.started[-1]
    return None
