"""The examination: all checks on one location, each of which may fail alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.errors import StorageError
from spark_ckpt.operations.advice import Step
from spark_ckpt.operations.doctor import checkpoints, damage, drivers, environment, files
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.doctor.findings import Finding, Report, Status, command_line
from spark_ckpt.operations.gc import EarlierStates
from spark_ckpt.progress import Progress
from spark_ckpt.redaction import redacted
from spark_ckpt.storage import Storage

Answers: TypeAlias = Callable[[Evidence], Iterator[Finding]]
"""The function of a check."""


class Check(NamedTuple):
    """A check.

    Args:
        name: name of its findings.
        answers: yields them.
        of_savepoints: True if a savepoint has what it checks.
    """

    name: str
    answers: Answers
    of_savepoints: bool = False


# The newest `_metadata` is read before everything is verified, because a running query may subsume it meanwhile.
CHECKS = (
    Check(environment.KIND, environment.check_kind, True),
    Check(drivers.DRIVER, drivers.check_driver),
    Check(drivers.TAKEOVERS, drivers.check_takeovers),
    Check(drivers.COORDINATOR, drivers.check_coordinator),
    Check(checkpoints.LAST_CHECKPOINT, checkpoints.check_last_checkpoint, True),
    Check(checkpoints.CHAINS, checkpoints.check_chains, True),
    Check(checkpoints.FAILURES, checkpoints.check_failures, True),
    Check(environment.VERSIONS, environment.check_versions, True),
    Check(damage.STATE, damage.check_state, True),
    Check(damage.SPARK_LOGS, damage.check_spark_logs, True),
    Check(files.UNFINISHED, files.check_unfinished),
    Check(files.FILES, files.check_files),
    Check(environment.CLOCK, environment.check_clock, True),
    Check(environment.FREE_SPACE, environment.check_free_space, True),
)
"""All checks but those of `--probe`, in the order of the report."""


def examine(
    storage: Storage,
    *,
    everything: bool = False,
    probe: bool = False,
    earlier_states: EarlierStates | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
    checks: Sequence[Check] = CHECKS,
) -> Report:
    """Examines a checkpoint location or a savepoint. The query may be running.

    Never fails: an error of a check is its answer. Writes nothing, except one temporary file with `probe`.

    Args:
        storage: storage of the location.
        everything: True to read all retained checkpoints in full. By default the newest is read and, if it is damaged,
            earlier ones until one is intact.
        probe: True to test the exclusive create and the clock of the storage with one file, which is deleted again.
        earlier_states: finds state files of the provider that the query was imported from.
        clock: source of time.
        progress: called after each segment that is read.
        checks: the checks.
    """
    evidence = Evidence(storage, clock or SystemClock(), everything, progress, earlier_states)
    try:
        is_savepoint = evidence.is_savepoint
    except StorageError:
        is_savepoint = False  # each check reports the error
    findings: list[Finding] = []
    for check in checks:
        if check.of_savepoints or not is_savepoint:
            findings += _answers(check, evidence)
    if not is_savepoint:
        answers = environment.probe_storage if probe else environment.no_probe
        findings += _answers(Check(environment.EXCLUSIVE_CREATE, answers), evidence)
    return Report(storage.location, tuple(findings))


def _answers(check: Check, evidence: Evidence) -> list[Finding]:
    try:
        return list(check.answers(evidence))
    except Exception as e:  # whatever fails, the on-call needs the other answers
        advice, command = None, None
        if isinstance(e, StorageError):
            advice = Step.STORAGE_ANSWERS.say()
            command = command_line("doctor", evidence.location)
        answer = redacted(f"the check failed: {e}" if str(e) else f"the check failed: {type(e).__name__}")
        return [Finding(check.name, Status.UNKNOWN, answer, advice, command, error=type(e).__name__)]
