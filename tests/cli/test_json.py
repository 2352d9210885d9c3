"""Shape of the JSON output: exactly that of the schema in the package.

A failure after a field was renamed, dropped or given another type means that users' programs fail, too: such a change
needs a new format. A new field needs a line in the schema, and `make docs`.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator, ValidationError

from spark_ckpt import errors
from spark_ckpt import metadata as m
from spark_ckpt.checkpoint.batch import StoreState
from spark_ckpt.checkpoint.errors import StateIdMismatchError, VersionNotFoundError
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.checkpoint.statistics import (
    CheckpointStats,
    CheckpointStatus,
    Spread,
    StateSize,
    SubtaskStateStats,
    SubtaskStats,
)
from spark_ckpt.cli.commands.doctor import DoctorResult
from spark_ckpt.cli.commands.edit import EditResult
from spark_ckpt.cli.commands.erase import EraseResult
from spark_ckpt.cli.commands.evolve import EvolutionResult
from spark_ckpt.cli.commands.export import ExportResult
from spark_ckpt.cli.commands.failover import FailoverResult
from spark_ckpt.cli.commands.gc import GcResult
from spark_ckpt.cli.commands.history import History, HistoryEntry
from spark_ckpt.cli.commands.history_of import HistoryOfResult
from spark_ckpt.cli.commands.import_ import ImportResult, UndoResult
from spark_ckpt.cli.commands.import_flink import FlinkImportResult
from spark_ckpt.cli.commands.list import CheckpointList
from spark_ckpt.cli.commands.mirror import MirrorResult
from spark_ckpt.cli.commands.offsets import MovedOffsetsResult, OffsetsResult
from spark_ckpt.cli.commands.probe import ProbeResult
from spark_ckpt.cli.commands.rescale import RescaleResult, RunningRescaleResult
from spark_ckpt.cli.commands.restore import RestoreResult
from spark_ckpt.cli.commands.rollback import RollbackResult
from spark_ckpt.cli.commands.savepoint import CopyResult
from spark_ckpt.cli.commands.tag import TagResult
from spark_ckpt.cli.commands.untag import UntagResult
from spark_ckpt.cli.commands.verify import AbsenceResult, FlinkVerifyResult, VerifyResult
from spark_ckpt.cli.end_offsets import EndOffsets, KafkaClientNotFoundError, KafkaUnavailableError
from spark_ckpt.cli.output import FORMAT, JsonOutput, Result
from spark_ckpt.cli.results.inspection import Inspection
from spark_ckpt.cli.results.savepoint_export import SavepointExportResult
from spark_ckpt.cli.results.streams import UnreadStreamsError
from spark_ckpt.completed import CheckpointRecord, MetadataReference
from spark_ckpt.completed.errors import DamagedRecordError, FencedError, UnknownOutcomeError
from spark_ckpt.edit import Absence, EditRefusedError, EditRowError, Erasure, StateEdit, Trace, history_of
from spark_ckpt.edit.erasing import ErasedFamily
from spark_ckpt.evolution import (
    Evolution,
    EvolutionRefusedError,
    EvolutionValueError,
    EvolvedSource,
    EvolvedStore,
    QueryPlanError,
)
from spark_ckpt.flink.export.errors import FlinkRowError, UnsupportedForFlinkError
from spark_ckpt.flink.export.export_savepoint import ExportedSource, ExportedState, FlinkExport
from spark_ckpt.flink.export.model import StateKind
from spark_ckpt.flink.importing.errors import (
    FlinkImportCheckError,
    FlinkImportRefusedError,
    FlinkImportRowError,
    FlinkStateNotMappedError,
    FlinkTypeError,
)
from spark_ckpt.flink.importing.operator_state import LeftBehind
from spark_ckpt.flink.importing.result import FlinkImport, ImportedState
from spark_ckpt.flink.rocksdb import (
    ChecksumUnavailableError,
    MissingTableError,
    RocksDbFormatError,
    UnsupportedRocksDbError,
)
from spark_ckpt.flink.streams import (
    StateFileOutsideError,
    StateFileSizeError,
    StateStreamFormatError,
    UnknownSerializerError,
)
from spark_ckpt.flink.streams.errors import UnsupportedStateKindError
from spark_ckpt.flink.tables.verify import FlinkDamage, FlinkVerdict, FlinkVerification
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_flags import COMPRESSED
from spark_ckpt.format.segment_writer import KeyGroupTooLargeError
from spark_ckpt.location import errors as location_errors
from spark_ckpt.location.errors import CheckpointNotFoundError, LinkedStateError, ModificationTimeUnknownError
from spark_ckpt.location.find import CheckpointLocation, FoundCheckpoint
from spark_ckpt.location.orphans import Leftover
from spark_ckpt.location.tags import Tag
from spark_ckpt.metadata.properties import CheckpointProperties, SnapshotType
from spark_ckpt.migrate import errors as migrate_errors
from spark_ckpt.migrate.exporting import Export
from spark_ckpt.migrate.importing import Import
from spark_ckpt.migrate.transferred import TransferredStore
from spark_ckpt.migrate.undo import Undo
from spark_ckpt.operations import errors as operation_errors
from spark_ckpt.operations.advice import Step
from spark_ckpt.operations.copy import CheckpointCopy
from spark_ckpt.operations.doctor import Finding, Report, Status
from spark_ckpt.operations.errors import CollectionRefusedError
from spark_ckpt.operations.gc import Collection, EarlierState
from spark_ckpt.operations.mirror import errors as mirror_errors
from spark_ckpt.operations.mirror.failover import Failover
from spark_ckpt.operations.mirror.following import MirroredCheckpoint
from spark_ckpt.operations.offsets import MovedOffsets, MovedSource
from spark_ckpt.operations.probe import Probe
from spark_ckpt.operations.rescale import RescaledStore, Rescaling
from spark_ckpt.operations.running_rescale import RunningRescaling
from spark_ckpt.operations.tagging import TaggedCheckpoint
from spark_ckpt.operations.verify import Verification
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.recovery.rollback import Rollback
from spark_ckpt.recovery.verdict import CheckpointVerdict
from spark_ckpt.rescaling.errors import RescaleNotAnsweredError, RescaleRefusedError
from spark_ckpt.spark_files.errors import SparkLogEntryExistsError, SparkLogFormatError, StateSchemaError
from spark_ckpt.spark_files.source_positions import KafkaPosition
from spark_ckpt.state.errors import (
    FilterError,
    StateNotFoundError,
    StateRowError,
    UnsupportedFlinkStateError,
    UnsupportedStateError,
)
from spark_ckpt.state_writing.targets import TargetKind
from spark_ckpt.storage.errors import PathEscapeError
from spark_ckpt.storage.resolve import AdlfsNotFoundError, GcsfsNotFoundError, S3fsNotFoundError
from tests.cli.json_schema import DEFINITIONS, ERRORS, RESULTS, SCHEMA, alternatives, used, validator
from tests.cli.states import state_location
from tests.edit.hashed_state import counts
from tests.flink.streams.corpus import backend, flink_job, job, lay_out, with_unknown_class, with_unknown_end
from tests.metadata.corpus import FLINK, MUTANTS, VECTORS
from tests.metadata.handles import checkpoint, everywhere
from tests.metadata.strategies import checkpoints
from tests.support.cli import run
from tests.support.locations import OWNER, make_location

INCREMENTAL = VECTORS / "flink" / "f120-rocksdb-incr-p2-second"
RANGE = m.KeyGroupRange(0, 1)
INLINE = m.ByteStreamStateHandle("inline", b"\xff\x00state")
EMPTY = m.EmptySegmentFileStateHandle()


def _keyed_operator() -> m.OperatorState:
    (operator,) = backend("types-full").metadata.operator_states
    return operator


def every_handle() -> m.CheckpointMetadata:
    """Checkpoint with the kinds of handles and fields that are missing in the corpus."""
    offsets = m.KeyGroupRangeOffsets(RANGE, np.array([-1, 2**63 - 1]))
    old = m.KeyGroupsStateHandle(offsets, m.KeyGroupsStateHandle(offsets, INLINE))
    new = m.KeyGroupsStateHandle(offsets, EMPTY, "id")
    files = (m.HandleAndLocalPath("1.sst", INLINE),)
    incremental = m.IncrementalRemoteKeyedStateHandle("backend", RANGE, 1, None, files, files)
    changes: tuple[m.ChangelogStateHandle, ...] = (
        m.InMemoryChangelogStateHandle((m.StateChange(-1, b"change"),), 0, 1, RANGE, "id"),
        m.ChangelogStateHandleStreamImpl((m.HandleAndOffset(INLINE, 0), m.HandleAndOffset(None, 0)), RANGE, 1, 1, "id"),
        m.ChangelogStateHandleStreamImpl((), RANGE, 1, 1, "id", "filesystem"),
    )
    changelog = m.ChangelogStateBackendHandle((old, None, new, incremental), changes, RANGE, 1, 1, "id")
    states = {mode.name: m.StateMetaInfo((0, 7), mode) for mode in m.DistributionMode}
    part = m.SegmentFileStateHandle("/shared/x", 0, 5, m.CheckpointedStateScope.EXCLUSIVE, "id")
    merged = m.FileMergingOperatorStreamStateHandle(states, "/taskowned", "/shared", EMPTY, True)
    subtasks = {
        0: m.OperatorSubtaskState(merged, replace(merged, delegate_state_handle=part), changelog, changes[0]),
        1: m.OperatorSubtaskState(managed_keyed_state=changes[1], raw_keyed_state=incremental),
        2: m.FinishedOperatorSubtaskState(),
    }
    master_states = (m.MasterState("json", b'{"a": [1, [2, 3]]}', 1), m.MasterState("bytes", b"\xff", 1))
    operators = (m.OperatorState(bytes(16), 3, 8, subtasks, INLINE), m.FullyFinishedOperatorState(bytes(16), 1, 8))
    return m.CheckpointMetadata(2**63 - 1, master_states, operators)


def _merged_and_compressed(store: StoreState) -> SegmentTable:
    """Its segments, with each delta merged from two and compressed."""
    table = store.segments
    first_versions = np.where(table.is_base, 0, table.versions - 1)
    return replace(table, first_versions=first_versions, flags=np.where(table.is_base, 0, COMPRESSED.bit))


def without(inspection: Inspection) -> list[Any]:
    """JSON of an inspection with properties and stores without their optional values, and with merged and
    compressed deltas."""
    properties = CheckpointProperties(True, None, *[False] * 6)
    stores = {
        key: replace(store, state_format_version=None, segments=_merged_and_compressed(store))
        for key, store in inspection.stores.items()
    }
    unnamed = replace(properties, checkpoint_type=SnapshotType("SavepointType", None))
    sources = {key: replace(source, text="kafka subscribe=orders") for key, source in inspection.sources.items()}
    changed = replace(inspection, stores=stores, sources=sources)
    return [
        json.loads(json.dumps({"format": FORMAT, **replace(changed, properties=each).to_json()}))
        for each in (properties, unnamed)
    ]


RECORD = CheckpointRecord(
    *(3, 1, OWNER, "", 1, 2, 0, 0, 0, 0, 0, ()), metadata=MetadataReference("chk-3/_metadata", 1, "00")
)
SPREAD = Spread(0, 1, 2)
SUBTASK = SubtaskStateStats(SubtaskKey(0, "default", 1), "1", 2, 3, 4, 5, 6)
HISTORY = [
    CheckpointStats(CheckpointStatus.FAILED, 1, 2, 0, 5, 0, 4, failures={"declined": 1}, detail="disk full"),
    CheckpointStats(
        CheckpointStatus.COMPLETED,
        *(1, 2, 0, 5, 4, 4),
        checkpoint_id=3,
        operation="evolve",
        completing_ms=7,
        size=StateSize(3, 2, 1),
        subtasks=SubtaskStats(SPREAD, SPREAD, SPREAD, (SUBTASK,)),
    ),
]

VERIFICATION = Verification(
    "/x",
    (
        CheckpointVerdict(RECORD, (Damage("/x/a", "reason", 1, SubtaskKey(0, "default", 1), 2),), 1, 2, 3, True),
        CheckpointVerdict(RECORD, (), 1, 2, 3, True),
    ),
    (Damage("/x/b", "reason"),),
)

REPORTS = [
    Report("/x", (Finding("state", Status.OK, "intact"),)),
    Report("/x", (Finding("clock", Status.WARNING, "ahead", Step.SET_CLOCK.say()),)),
    Report("/x", (Finding("files", Status.UNKNOWN, "failed", error="StorageError"),)),
    Report(
        "/x", (Finding("state", Status.PROBLEM, "damaged", Step.USE_BACKUP.say(), "spark-ckpt verify /x", {"id": 1}),)
    ),
]


FLINK_STATES = tuple(
    ImportedState("u/s", "VALUE", "0/s", kind.value, rows, (("key", "key.key", "int64", "int64"),))
    for kind in TargetKind
    if kind not in (TargetKind.SEEN, TargetKind.GROUP)  # no state of Flink goes there
    for rows in (None, 5)
)
LEFT = (LeftBehind("source", ("offset",)),)

ERROR_EXAMPLES: list[errors.SparkCkptError] = [
    location_errors.LocationNotFoundError("/x"),
    location_errors.ForeignLocationError("/x", "reason"),
    location_errors.NoCheckpointError("/x"),
    location_errors.CheckpointsMissingError("/x/ckpt", 1),
    location_errors.NotCommittedError("/x", 1, 2),
    operation_errors.TargetNotEmptyError("/x"),
    operation_errors.SubsumedDuringCopyError("/x", 20),
    location_errors.LocationInUseError("/x", "owner", True, 1),
    operation_errors.RollbackRefusedError("/x", 1, "reason"),
    CheckpointNotFoundError("/x", 1, [2, 3]),
    location_errors.TagNameError("a/b"),
    location_errors.TagExistsError("/x", "a", 7),
    location_errors.TagNotFoundError("/x", "a", ["b"]),
    location_errors.NoCheckpointAtTimeError("/x", 5, None),
    location_errors.NoCheckpointAtTimeError("/x", 5, 7),
    operation_errors.TagRefusedError("/x", "reason"),
    mirror_errors.NotAMirrorError("/x", "reason"),
    mirror_errors.MirrorDivergedError("/x", "/y", "reason"),
    mirror_errors.SourceUnreachableError("/x", "/y", "reason"),
    location_errors.TargetExistsError("/x/_metadata"),
    m.MetadataFormatError("/x", 8, "field", "reason"),
    m.UnsupportedMetadataVersionError("/x", 7),
    m.MetadataValueError("field", "reason"),
    m.MetadataLossError(2, [m.Loss("a", "coordinator state", "00"), m.Loss("b", "channel state", "00", 1)]),
    m.PathPrefixError("x"),
    m.NothingToRelocateError("s3://b", ["s3a://b/x"], ["s3a"], 1),
    errors.StorageError("/x", "read", OSError("reason")),
    errors.StateFileNotFoundError("/x"),
    S3fsNotFoundError("s3://b"),
    GcsfsNotFoundError("gs://b"),
    AdlfsNotFoundError("abfs://c@a"),
    location_errors.HadoopNotFoundError("hdfs://b", "reason"),
    location_errors.FileSystemPackageError("abfss://b", "abfss", "adlfs"),
    DamagedRecordError("/x", "reason"),
    errors.DamagedCheckpointError("/x", 1, "reason", None, "way out"),
    errors.DamagedCheckpointError("/x", 2, "reason", 1, "way out"),
    PathEscapeError("/x", "/y"),
    errors.CheckpointError("message"),
    SegmentError("/x", 8, "reason"),
    CollectionRefusedError("/x", 1, errors.CheckpointError("message")),
    LinkedStateError("/x"),
    ModificationTimeUnknownError("/x"),
    StateStreamFormatError("/x", 8, "field", "reason"),
    UnknownSerializerError("/x", 8, "field", "class"),
    StateFileSizeError("/x", 1, 2),
    StateFileOutsideError("/x", ("/y",)),
    UnreadStreamsError("/x", 1, 2),
    RescaleRefusedError("/x", 5, "reason"),
    RescaleNotAnsweredError("/x", 5, 300.5),
    operation_errors.OffsetsRefusedError("/x", "reason"),
    EditRefusedError("/x", "reason"),
    EvolutionRefusedError("/x", ["reason"]),
    EvolutionValueError("0/default", "reason"),
    QueryPlanError("reason"),
    EditRowError("key", 3, "reason"),
    EditRowError("key", None, "reason"),
    migrate_errors.TransferRefusedError("/x", "reason"),
    migrate_errors.QueryMayRunError("/x", "/x/offsets/1", 5, 60),
    migrate_errors.StateTransferError("SourceStateError", "message"),
    FlinkImportRefusedError("/x", "reason"),
    FlinkStateNotMappedError("u/s", "reason", ["0/s"]),
    FlinkTypeError("s", "value", "int64", "string"),
    FlinkImportRowError("s", "value", "a", "reason"),
    FlinkImportCheckError("0/s", 5, 4),
    KeyGroupTooLargeError(7, 2**31),
    SparkLogFormatError("/x", "reason"),
    SparkLogEntryExistsError("/x"),
    VersionNotFoundError("/x", 5, {7: 3, 8: 4}),
    StateIdMismatchError("message"),
    FencedError("/x", 1, 2, "process 1 on a (run b)"),
    UnknownOutcomeError("/x", None),
    errors.SettingError("key", "reason"),
    StateNotFoundError("/x", "reason", ["default"]),
    StateSchemaError("/x", "reason"),
    StateRowError("/x", 8, "operator 0, store default", 1, "reason"),
    UnsupportedStateError("operator 0, store default", "reason"),
    UnsupportedFlinkStateError("counts", "reason"),
    UnsupportedStateKindError("/x", 8, "kind", "counts"),
    UnsupportedForFlinkError("00 (counts)", "count", "reason"),
    UnsupportedForFlinkError("00", None, "reason"),
    FlinkRowError("00", "count", 5, "value", "reason"),
    FlinkRowError("00", "count", None, "value", "reason"),
    RocksDbFormatError("/x", 8, "field", "reason"),
    UnsupportedRocksDbError("/x", "feature"),
    MissingTableError("/x", "000012.sst"),
    ChecksumUnavailableError(),
    FilterError("n =", 3, "reason"),
    KafkaClientNotFoundError(),
    KafkaUnavailableError("h:9092", "reason"),
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Any]]:
    """Output of the commands, by name of its definition."""
    directory = tmp_path_factory.mktemp("json")
    ours = make_location(directory / "ours")
    m.dump(every_handle(), directory / "v3" / "_metadata", 3)
    m.dump(everywhere("s3://b/job"), directory / "paths" / "_metadata", 3)
    m.dump(checkpoint("/old/x"), directory / "v2" / "_metadata", 2)
    vectors = [vector.path for vector in (*FLINK, *MUTANTS) if vector.loads]
    new = (directory / f"new-{number}" for number in count())
    heap, rocksdb = (lay_out(job(name), directory) for name in ("f120-heap-p1-file", "f120-rocksdb-full-p1"))
    commands: dict[str, list[tuple[object, ...]]] = {
        "list": [
            (ours,),
            (make_location(directory / "empty", batches=0),),
            (state_location(directory / "sources", with_sources=True).path, "--sources"),
        ],
        "inspect": [
            *((place,) for place in (ours, directory / "v3", directory / "paths", *vectors)),
            *((place, "--streams", "--entries", 1) for place in (ours, heap, rocksdb, INCREMENTAL)),
        ],
        "convert": [
            (source, next(new), "--to-version", version)
            for source, version in ((INCREMENTAL, 3), (directory / "v3", 3), (directory / "v2", 2))
        ],
        "relocate": [
            ("oracle://ckpt", "/new", INCREMENTAL, next(new)),
            ("s3://b/job/1", "/new", directory / "paths", next(new)),
            ("/old", "/new", directory / "v2", next(new), "--dry-run"),
        ],
    }
    states: list[tuple[object, ...]] = [
        (state_location(directory / "state").path,),
        (state_location(directory / "variables", variables={"count": "ValueState"}, state_format=None).path,),
    ]
    rows = (*states[1], "--variable", "count")
    commands |= {
        "state": states,
        "read": [states[0], (*rows, "--limit", 1)],
        "export": [(*rows, f"--to-{form}", next(new)) for form in ("parquet", "delta")],
        "diff": [(*states[0], 2, 3), (directory / "sources", 2, 3)],
    }
    flink = flink_job(directory / "flink")
    moved = ("--map", f"oracle://ckpt={flink.parent}")
    unnamed = with_unknown_end(with_unknown_class(backend("unknown-full"), directory / "unnamed"))
    named = m.CheckpointMetadata(1, (), (replace(_keyed_operator(), name="Counts", uid="counts"),))
    m.dump(named, directory / "named" / "_metadata", 5)
    commands |= {
        "flink_state": [(flink, *moved), (directory / "named",), (unnamed.directory,)],
        "flink_read": [(flink, *moved, "--variable", "sum")],
        "flink_export": [
            (flink, *moved, "--variable", "sum", f"--to-{form}", next(new)) for form in ("parquet", "delta")
        ],
        "flink_diff": [(flink, 1, 2, *moved, "--variable", "sum")],
        "flink_verify": [(flink, *moved)],
    }
    names = {"export": "read", "flink_export": "read"} | {
        f"flink_{name}": name for name in ("state", "read", "diff", "verify")
    }
    outputs = {
        name: [run(names.get(name, name), *arguments, "--json").json for arguments in each]
        for name, each in commands.items()
    }
    outputs["inspect"] += without(Inspection.of(CheckpointLocation.open(ours).find()))
    position = KafkaPosition("orders", 1, 5)
    for ends in (EndOffsets({("orders", 1): 7}), EndOffsets({})):
        listed = CheckpointList(
            "/x", [RECORD], {RECORD.id: [SourceState("0", b"id", (position,))]}, ends, tags={RECORD.id: ["a", "b"]}
        )
        outputs["list"].append(printed(JsonOutput().show, listed))
    orphans = (Leftover("shared/a", 1, None, False), Leftover("shared/b", 2, 1_700_000_000_000, False))
    rollback = Rollback("/x", False, RECORD, "rolled-back/1", (4,), (5,), ("offsets/4",), 1)
    copy = CheckpointCopy("/x", "/y", False, RECORD, "id", 1, 2)
    store = RescaledStore(0, "dedupe", "default", 3, 4, 9)
    rescaling = Rescaling("/x", 3, 4, 7, 12, 14, 1000, 2, (3, 6), (store,))
    dry = replace(rescaling, checkpoint_id=None, new_bytes=0)
    of_flink = FlinkImport(
        "/flink", 3, "/x", 1, 5, 100, FLINK_STATES, ("u/a",), ("u/b",), ("0/c",), LEFT, '{"orders":{"0":17}}', True
    )
    dry_flink = replace(of_flink, checkpoint_id=None, starting_offsets=None)
    stored = TransferredStore(0, "dedupe", "default", 3, 4, 9, {"default": 4})
    known = TransferredStore(0, "dedupe", "default", 3, None, None, {"default": None})
    imported = Import("/x", "/x", "HDFS", 3, True, 1, 5, (stored,))
    planned = Import("/x", "/y", "HDFS", 3, True, 2, None, (known,))
    moved_offsets = MovedOffsets("/x", 3, 8, 2, 5, (MovedSource("0", "17", "5"),))
    stores = (
        EvolvedStore(0, "dedupe", "default", 1, 9, True, ("note",)),
        EvolvedStore(1, "x", "y", None, 0, False, ()),
    )
    began = (EvolvedSource(0, "json path=/in", 0, "7"), EvolvedSource(1, "rate", None, None))
    evolved = Evolution("/x", "/y", stores, ("left",), began, ("watermark",), 9, 4, 5, 1000)
    same = replace(evolved, new_location=None, batch_id=None, checkpoint_id=None)
    edited = StateEdit("/x", 0, "default", "default", 1, 2, 3, 4, 2, 7, 12, 14, 1000)
    family = ErasedFamily(0, "default", "default", 2)
    erased = Erasure("/x", 1, (family,), 2, (3,), ("ckpt/shared/a",), ("/s",), 7, 12, 14, 1000)
    absence = Absence("/x", 1, 9, 70, (Trace("ckpt/shared/a", 0, 5, "operator 0", "default", 1),))
    results: dict[str, list[Result]] = {
        "history": [History("/x", HISTORY), HistoryEntry("/x", HISTORY[1], [SUBTASK])],
        "gc": [
            GcResult(Collection("/x", False, orphans, (("a", "reason"),), orphans)),
            GcResult(Collection("/x", False, (), earlier=EarlierState("HDFS", orphans, ()))),
        ],
        "rollback": [RollbackResult(rollback)],
        "savepoint": [CopyResult(copy)],
        "tag": [TagResult(TaggedCheckpoint("/x", "before-upgrade", RECORD))],
        "untag": [UntagResult("/x", Tag("before-upgrade", 7))],
        "mirror": [
            MirrorResult("/x", "/y", MirroredCheckpoint(7, RECORD, 3, 4096, 120, True)),
            MirrorResult("/x", "/y", MirroredCheckpoint(None, RECORD, 0, 0, 0, False)),
        ],
        "failover": [
            FailoverResult(Failover("/y", "/x", True, None, 1, RECORD)),
            FailoverResult(Failover("/y", "/x", False, "no route", 0, RECORD)),
        ],
        "restore": [RestoreResult(copy)],
        "verify": [VerifyResult(VERIFICATION)],
        "doctor": [DoctorResult(report) for report in REPORTS],
        "rescale": [RescaleResult(rescaling), RescaleResult(dry)],
        "rescale_running": [
            RunningRescaleResult(RunningRescaling("/x", 3, 4, 7, 1200)),
            RunningRescaleResult(RunningRescaling("/x", 4, 4, None, 800)),
        ],
        "offsets": [OffsetsResult("/x", RECORD, [SourceState("0", b"id", (position,))], None)],
        "moved_offsets": [
            MovedOffsetsResult(moved_offsets),
            MovedOffsetsResult(replace(moved_offsets, checkpoint_id=None)),
        ],
        "evolve": [EvolutionResult(evolved), EvolutionResult(same)],
        "edit": [EditResult(edited), EditResult(replace(edited, checkpoint_id=None))],
        "erase": [EraseResult(erased), EraseResult(replace(erased, checkpoint_id=None, batch_id=None))],
        "history_of": [HistoryOfResult(history_of(counts(directory / "hashed").path, pa.table({"user": ["u0"]})))],
        "absence": [AbsenceResult(absence)],
        "probe": [ProbeResult(Probe("/x", 16, 50, 49, 1, 0, 2, 3, 1, 1.5, 20.0))],
        "import": [ImportResult(imported), ImportResult(planned)],
        "import_undo": [UndoResult(Undo("/x", False, "HDFS", 3, True, 5))],
        "import_flink": [FlinkImportResult(of_flink), FlinkImportResult(dry_flink)],
        "state_export": [ExportResult(Export("/x", "/y", "HDFS", False, 1, 3, True, 1, (stored,)))],
    }
    by_kind = [
        ExportedState(kind.name, kind.name, "count", "new ...", "", number, 0) for number, kind in enumerate(StateKind)
    ]
    to_flink = FlinkExport(
        *("/x", "/y", False, 1, 3, 0, "dedupe", "counts", "00", 128, "Types.LONG"), tuple(by_kind), (), 2, 9
    )
    unwritten = ExportedState("count", "VALUE", "count", "new ...", "note", None, None)
    read = ExportedSource(SourceState("0", b"", (position,)), "orders", "00", "OffsetsInitializer...")
    sources = (read, ExportedSource(SourceState("1", b""), None, None, ""))
    results["savepoint_export"] = [
        SavepointExportResult(replace(to_flink, sources=sources)),
        SavepointExportResult(replace(to_flink, uid=None, dry_run=True, states=(unwritten,), files=None, bytes=None)),
    ]
    outputs |= {name: [printed(JsonOutput().show, result) for result in each] for name, each in results.items()}
    places = (FlinkDamage("/x", "reason"), FlinkDamage("/x/1", "reason", 8, "00", 1))
    flawed = FlinkVerification("/x", (FlinkVerdict("/x", None, [*places], [*places]),))
    outputs["flink_verify"].append(printed(JsonOutput().show, FlinkVerifyResult(flawed)))
    return outputs


@pytest.fixture(scope="module")
def error_outputs() -> list[Any]:
    """Output of failed commands."""
    return [printed(JsonOutput().error, error) for error in ERROR_EXAMPLES]


def printed(method: Callable[[Any], None], result: object) -> Any:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        method(result)
    return json.loads(text.getvalue())


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_what_the_schema_says(outputs: Mapping[str, list[Any]], name: str) -> None:
    for output in outputs[name]:
        assert next(iter(output.items())) == ("format", FORMAT)
        validator(name).validate(output)


def test_errors_are_what_the_schema_says(error_outputs: list[Any]) -> None:
    for output in error_outputs:
        assert next(iter(output.items())) == ("format", FORMAT)
        validator(output["error"]).validate(output)
    assert {output["error"] for output in error_outputs} == set(ERRORS)


def test_every_class_of_errors_that_the_commands_have_is_described() -> None:
    def classes(base: type[Exception]) -> Iterator[type[Exception]]:
        yield base
        for derived in base.__subclasses__():
            yield from classes(derived)

    packages = (
        "cli",
        "edit",
        "evolution",
        "flink",
        "location",
        "metadata",
        "migrate",
        "operations",
        "recovery",
        "state",
    )
    own = tuple(f"spark_ckpt.{package}." for package in packages)
    named = {each.__name__ for each in classes(errors.SparkCkptError) if each.__module__.startswith(own)}
    # `inspect` checks that its file exists before it calls `metadata.load`.
    by_no_command = {"MetadataNotFoundError"}
    by_the_start_of_a_query = {
        "ForeignStateError",
        "ImportUnfinishedError",
        "ParallelismChangedError",
        "QueryChangedError",
        "RolledBackError",
    }
    assert named - by_no_command - by_the_start_of_a_query <= set(ERRORS)


def test_nothing_in_the_schema_is_left_unused(outputs: Mapping[str, list[Any]], error_outputs: list[Any]) -> None:
    possible = {where for name in DEFINITIONS for where in alternatives(DEFINITIONS[name], f"#/$defs/{name}")}
    named = [(name, output) for name in RESULTS for output in outputs[name]]
    named += [(output["error"], output) for output in error_outputs]
    seen = {where for name, output in named for where in used(output, DEFINITIONS[name], f"#/$defs/{name}")}
    base = {f"#/$defs/error.{field}" for field in DEFINITIONS["error"]["properties"]}
    assert possible - base - seen == set()


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["title"].endswith(f"format {FORMAT}")
    undescribed = [name for name, definition in DEFINITIONS.items() if not definition.get("description")]
    assert undescribed == []


@settings(max_examples=40)
@given(checkpoints(3))
def test_every_checkpoint_is_what_the_schema_says(metadata: m.CheckpointMetadata) -> None:
    inspection = Inspection.of(FoundCheckpoint("path", 1, metadata))
    validator("inspect").validate({"format": FORMAT, **inspection.to_json()})


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda shown: shown.pop("size"), "'size' is a required property"),
        (lambda shown: shown.update(size="1"), "'1' is not of type 'integer'"),
        (lambda shown: shown.update(more=1), "'more' was unexpected"),
        (lambda shown: shown["operator_states"][0].update(parallelism=None), "None is not of type 'integer'"),
    ],
)
def test_the_schema_notices_changes(outputs: Mapping[str, list[Any]], change: Callable[[Any], Any], where: str) -> None:
    shown = copy.deepcopy(outputs["inspect"][0])
    change(shown)
    with pytest.raises(ValidationError, match=re.escape(where)):
        validator("inspect").validate(shown)


def test_numbers_in_a_row_take_one_line(tmp_path: Path) -> None:
    offsets = np.arange(-1, 9_999)
    handle = m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(0, offsets), m.ByteStreamStateHandle("[\n1,\n2\n]", b""))
    subtask = m.OperatorSubtaskState(managed_keyed_state=handle)
    states = (m.MasterState("n", b'{"a": [1, 2], "b": [1.5, [3]], "c": [], "d": "[\\n 1,\\n 2\\n]"}', 1),)
    m.dump(
        m.CheckpointMetadata(1, states, (m.OperatorState(bytes(16), 1, 10_000, {0: subtask}),)), tmp_path / "_metadata"
    )
    shown = run("inspect", tmp_path, "--json")
    assert len(shown.stdout.splitlines()) < 100
    assert f'"offsets": [{", ".join(map(str, offsets))}]' in shown.stdout
    keyed = shown.json["operator_states"][0]["subtask_states"][0]["managed_keyed_state"]
    assert keyed["group_range_offsets"]["offsets"] == offsets.tolist()
    assert keyed["delegate_state_handle"]["handle_name"] == "[\n1,\n2\n]"
    assert shown.json["master_states"][0]["payload"] == {"a": [1, 2], "b": [1.5, [3]], "c": [], "d": "[\n 1,\n 2\n]"}


@pytest.mark.parametrize("payload", [b"NaN", b"[1e999]", b'{"a": -Infinity}', b"[" * 60 + b"]" * 60, b"[" * 5000, b"{"])
def test_a_payload_that_json_cannot_carry_is_text(tmp_path: Path, payload: bytes) -> None:
    m.dump(m.CheckpointMetadata(1, (m.MasterState("n", payload, 1),)), tmp_path / "_metadata")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    shown = json.loads(run("inspect", tmp_path, "--json").stdout, parse_constant=refuse)
    assert shown["master_states"][0]["payload"] == payload.decode()
    assert run("inspect", tmp_path).status == 0
