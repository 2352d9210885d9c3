"""Checks of what surrounds the checkpoints: kind of location, versions, clocks, storage."""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt import __version__
from spark_ckpt.checkpoint.layout import CKPT
from spark_ckpt.completed import ClaimRecord
from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.errors import StateFileNotFoundError, UnsupportedFormatError
from spark_ckpt.features import Feature
from spark_ckpt.figures import count, human_duration, human_size, iso_time
from spark_ckpt.jars import SUPPORTED_SPARK
from spark_ckpt.operations.advice import Step
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.doctor.findings import Finding, Status
from spark_ckpt.operations.mirror.note import MirrorNote
from spark_ckpt.storage import CreateOutcome, Storage
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from spark_ckpt.storage.probing import SEVERAL_WON, probe_names, several_won

KIND = "kind"
VERSIONS = "versions"
CLOCK = "clock"
FREE_SPACE = "free space"
EXCLUSIVE_CREATE = "exclusive create"

_SKEW_MS = 5_000
"""Difference of clocks from which a warning is due. Object stores tell times in whole seconds."""
_MIN_FREE = 1 << 30
_ZOOKEEPER = "zookeeper"
_NOT_TESTED = "not tested: pass --probe, which writes and deletes small files"
_CONTENDERS, _ROUNDS = 8, 3
"""Creates of one file at once, and files. A start of a query has half as many contenders."""


def check_kind(evidence: Evidence) -> Iterator[Finding]:
    """Savepoint, mirror or checkpoint location, and the provider that the query starts with."""
    if evidence.is_savepoint:
        yield Finding(KIND, Status.OK, "a savepoint: no query runs on it", data={"kind": "savepoint"})
        return
    data = {"kind": "location"}
    batches = evidence.batches
    provider = evidence.log.offsets(batches.started[-1]).conf.get(PROVIDER_KEY) if batches.started else None
    if provider not in (None, PROVIDER_CLASS):
        yield Finding(
            KIND,
            Status.WARNING,
            f"a checkpoint location, but batch {batches.started[-1]} has begun with the state store {provider}: the "
            "query starts with that one",
            Step.OTHER_PROVIDER.say(),
            data={**data, "provider": provider},
        )
    elif (note := MirrorNote.read(evidence.storage)) is not None and note.promoted_ms is None:
        answer = f"a mirror of {note.source}: `spark-ckpt failover` makes it the location of the query"
        yield Finding(KIND, Status.OK, answer, data={"kind": "mirror", "source": note.source})
    else:
        yield Finding(KIND, Status.OK, "the checkpoint location of a query", data=data)


def check_versions(evidence: Evidence) -> Iterator[Finding]:
    """Spark, features of the formats, and whether this release reads them."""
    data: dict[str, object] = {"spark_ckpt": __version__}
    try:
        state, records = evidence.state, evidence.records.values()
    except UnsupportedFormatError as e:
        yield Finding(
            VERSIONS,
            Status.WARNING,
            f"this release, {__version__}, cannot read it: {e.path} requires {e.needs}",
            Step.UPGRADE.say(),
            data={**data, "features": list(e.features)},
            error=type(e).__name__,
        )
        return
    features = set(state.batch.features) if state is not None and state.batch is not None else set()
    claims = [record for record in records if isinstance(record, ClaimRecord)]
    if any(claim.seen is not None for claim in claims):
        features.add(Feature.SEEN_RECORDS.value)
    needs = f"features {', '.join(sorted(features))}" if features else "no features"
    answer = f"readable by this release, {__version__}; needs {needs}"
    data["features"] = sorted(features)
    if claims:
        data["claimed_by"] = claims[-1].release
        answer = f"claimed by {_release(claims[-1].release)}; {answer}"
    if state is None or state.batch is None:
        yield Finding(VERSIONS, Status.OK, answer, data=data)
        return
    batch = state.batch
    spark = batch.spark_version
    answer = (
        f"newest checkpoint by {_release(batch.release)} under Spark {spark}, state format {batch.checkpoint_format}; "
        f"{answer}"
    )
    if batch.log == _ZOOKEEPER:
        answer += "; its records are the mirror of the log in ZooKeeper, which may lag"
    data |= {
        "written_by": batch.release,
        "spark": spark,
        "checkpoint_format": batch.checkpoint_format,
        "log": batch.log,
    }
    if ".".join(spark.split(".")[:2]) in SUPPORTED_SPARK:
        yield Finding(VERSIONS, Status.OK, answer, data=data)
    else:
        supported = ", ".join(SUPPORTED_SPARK)
        yield Finding(
            VERSIONS,
            Status.WARNING,
            f"{answer}; this release has jars for Spark {supported} only",
            Step.OTHER_SPARK.say(release=__version__, supported=supported),
            data=data,
        )


def _release(release: str | None) -> str:
    return "a release that does not name itself" if release is None else f"spark-ckpt {release}"


def check_clock(evidence: Evidence) -> Iterator[Finding]:
    """Records from the future: the clocks of a driver and of this machine differ."""
    records = [*evidence.records.values()] or [*evidence.checkpoints]
    if not records:
        yield Finding(CLOCK, Status.UNKNOWN, "no record to compare with")
        return
    latest = max(records, key=lambda record: record.timestamp_ms)
    ahead_ms = latest.timestamp_ms - evidence.now_ms
    data = {"now": iso_time(evidence.now_ms), "ahead_ms": max(0, ahead_ms)}
    if ahead_ms > _SKEW_MS:
        yield Finding(
            CLOCK,
            Status.WARNING,
            f"record {latest.id} lies {human_duration(ahead_ms)} in the future: the clock of {latest.owner.host} or of "
            "this machine is wrong",
            Step.SET_CLOCKS.say(host=latest.owner.host),
            data=data,
        )
    else:
        yield Finding(CLOCK, Status.OK, "no record lies in the future", data=data)


def check_free_space(evidence: Evidence) -> Iterator[Finding]:
    """Free space of a local disk, beside the size of the state."""
    free = evidence.storage.free_bytes()
    if free is None:
        yield Finding(FREE_SPACE, Status.UNKNOWN, "this storage does not tell", data={"bytes": None})
        return
    needed = max(_MIN_FREE, 0 if evidence.newest is None else evidence.newest.state_bytes)
    if free < needed:
        yield Finding(
            FREE_SPACE,
            Status.WARNING,
            f"{human_size(free)} free",
            Step.MAKE_ROOM.say(size=human_size(needed)),
            data={"bytes": free},
        )
    else:
        yield Finding(FREE_SPACE, Status.OK, f"{human_size(free)} free", data={"bytes": free})


def no_probe(evidence: Evidence) -> Iterator[Finding]:
    """Says that the storage was not tested."""
    yield Finding(EXCLUSIVE_CREATE, Status.UNKNOWN, _NOT_TESTED, data={"tested": False})


def probe_storage(evidence: Evidence) -> Iterator[Finding]:
    """Creates a file twice, and others several times at once; compares the storage's clock with this machine's.

    The files are deleted.
    """
    storage = evidence.storage
    has_directory = any(entry.name == CKPT for entry in storage.list(""))
    name, *raced = names = probe_names(CKPT, 1 + _ROUNDS)
    before_ms = evidence.clock.now_ms()
    try:
        _, second = (storage.create_exclusive(name, data).outcome for data in (b"1", b"2"))
        after_ms = evidence.clock.now_ms()
        content = _content(storage, name)
        written = {entry.name: entry.modified_ms for entry in storage.list(CKPT)}.get(name.rpartition("/")[2])
        storage.probe(CKPT)
        if several_won(storage, raced, _CONTENDERS):
            raise ExclusiveCreateUnsupportedError(storage.location, SEVERAL_WON)
    except ExclusiveCreateUnsupportedError as e:
        yield _no_exclusive_create(str(e))
        return
    finally:
        storage.delete_all(names)
        if not has_directory:
            storage.remove_empty(CKPT)
    if second is CreateOutcome.WON or content not in (b"1", None):
        yield _no_exclusive_create("it replaced an existing file")
    elif content is None or second is not CreateOutcome.LOST:
        yield Finding(EXCLUSIVE_CREATE, Status.UNKNOWN, "the storage did not say who won", data={"tested": True})
    else:
        answer = f"works: the second create of one file lost, and one of {_CONTENDERS} at once won"
        yield Finding(EXCLUSIVE_CREATE, Status.OK, answer, data={"tested": True, "works": True})
    yield _storage_clock(written, before_ms, after_ms)


def _content(storage: Storage, name: str) -> bytes | None:
    """Content of a file; None if the storage refused to create it, or did so without an answer."""
    try:
        return storage.read(name)
    except StateFileNotFoundError:
        return None


def _no_exclusive_create(reason: str) -> Finding:
    return Finding(
        EXCLUSIVE_CREATE,
        Status.WARNING,
        f"missing: {reason}. Nothing fences two drivers on this location",
        Step.OTHER_STORAGE.say(),
        data={"tested": True, "works": False},
    )


def _storage_clock(written_ms: int | None, before_ms: int, after_ms: int) -> Finding:
    if written_ms is None:
        return Finding(CLOCK, Status.UNKNOWN, "the storage tells no time of its files", data={"storage_skew_ms": None})
    skew_ms = written_ms - after_ms if written_ms > after_ms else min(0, written_ms - before_ms)
    data = {"storage_skew_ms": skew_ms}
    if abs(skew_ms) > _SKEW_MS:
        side = "ahead of" if skew_ms > 0 else "behind"
        answer = f"the storage's clock is {human_duration(abs(skew_ms))} {side} this machine's"
        return Finding(CLOCK, Status.WARNING, answer, Step.SET_CLOCK.say(), data=data)
    allowed = count(_SKEW_MS // 1000, "second")
    return Finding(CLOCK, Status.OK, f"the storage and this machine agree within {allowed}", data=data)
