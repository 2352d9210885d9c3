"""Checks for damage: state, our log, and Spark's logs. They read the newest checkpoint in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_ckpt.figures import count, human_size
from spark_ckpt.operations.advice import Advice, Step
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.doctor.findings import Finding, Status, command_line
from spark_ckpt.operations.verify import Remedy, Verification
from spark_ckpt.recovery.damage import Damage

STATE = "state"
SPARK_LOGS = "spark logs"


def check_state(evidence: Evidence) -> Iterator[Finding]:
    """Damage of checkpoints and of the log of completed checkpoints."""
    found = evidence.verification
    if found is None:
        yield Finding(STATE, Status.OK, "no checkpoint has completed yet, and Spark's logs need none")
        return
    ours, _ = evidence.damages()
    read = [verdict.record.id for verdict in found.checkpoints]
    data = {"read": read, "restorable": list(found.restorable), "damages": [str(damage) for damage in ours]}
    if ours:
        advice, command = _way_out(evidence, found)
        yield Finding(STATE, Status.PROBLEM, _damaged(ours), advice, command, data)
    else:
        size = sum(verdict.size for verdict in found.checkpoints)
        what = f"checkpoint {read[0]}" if len(read) == 1 else f"{len(read):,} checkpoints"
        yield Finding(STATE, Status.OK, f"{what} intact: {human_size(size)} read", data=data)


def check_spark_logs(evidence: Evidence) -> Iterator[Finding]:
    """What a start of the query begins with, and whether Spark's logs agree with the checkpoints."""
    found, (_, of_spark) = evidence.verification, evidence.damages()
    batches = evidence.batches
    data = {
        "last_started": batches.started[-1] if batches.started else None,
        "last_committed": batches.committed[-1] if batches.committed else None,
        "damages": [str(damage) for damage in of_spark],
    }
    if of_spark and found is not None:
        advice, command = _way_out(evidence, found)
        yield Finding(SPARK_LOGS, Status.PROBLEM, _damaged(of_spark), advice, command, data)
        return
    if not batches.started:
        answer = "no batch has begun"
    elif batches.last_committed == batches.started[-1]:
        answer = f"batch {batches.last_committed} is the last one, and is committed: a start continues after it"
    else:
        answer = f"batch {batches.started[-1]} has begun and is not committed: a start repeats it"
    yield Finding(SPARK_LOGS, Status.OK, answer, data=data)


def _damaged(damages: Sequence[Damage]) -> str:
    more = f", and {len(damages) - 1:,} more" if len(damages) > 1 else ""
    return f"damaged in {count(len(damages), 'place')}: {damages[0]}{more}"


def _way_out(evidence: Evidence, found: Verification) -> tuple[Advice, str | None]:
    if evidence.is_savepoint:
        return Step.OTHER_SAVEPOINT.say(), None
    match found.remedy:
        case Remedy.ROLLBACK:
            checkpoint_id = found.restorable[0]
            advice = Step.GO_BACK.say(checkpoint=checkpoint_id)
            return advice, command_line("rollback", evidence.location, "--id", checkpoint_id)
        case Remedy.COPY:
            checkpoint_id = found.restorable[0]
            options = ("NEW_DIRECTORY", "--id", checkpoint_id)
            return Step.KEEP_COPY.say(), command_line("savepoint", evidence.location, *options)
    return Step.USE_BACKUP.say(), command_line("verify", evidence.location, "--all")
