"""Export of a stopped query's state to Flink. It needs neither Spark nor Flink."""

from __future__ import annotations

import os
from collections.abc import Mapping

from spark_ckpt.flink.export.check import MAX_KEY_GROUPS
from spark_ckpt.flink.export.export_savepoint import FlinkExport, export_plan
from spark_ckpt.flink.export.model import DEFAULT_MAX_PARALLELISM
from spark_ckpt.flink.export.plan import Target, plan_operator
from spark_ckpt.flink.export.source_operator import Forms
from spark_ckpt.flink.export.sources import ONLY
from spark_ckpt.flink.export.struct_types import KeyForm, ValueForm
from spark_ckpt.location.driver_liveness import check_no_known_driver
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.snapshot import find_record
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.progress import Progress
from spark_ckpt.state.catalog import open_state

OPERATOR_ID_BYTES = 16


def export_savepoint(
    location: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    key: str,
    uid: str | None = None,
    operator_id: bytes | str | None = None,
    operator: int | None = None,
    value: str = "plain",
    sql_aggregate: bool = False,
    source_uids: Mapping[str, str] | str | None = None,
    max_parallelism: int = DEFAULT_MAX_PARALLELISM,
    id: int | None = None,  # noqa: A002  (the word of the command)
    force: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> FlinkExport:
    """Writes the state of an operator as a savepoint from which a Flink job starts. The query never changes.

    Parameters
    ----------
    location
        Checkpoint location of a stopped query, or a savepoint of it, as a path or URL.
    target
        A new directory, as a path or URL.
    key
        Type of the keys in the job: `long`, `int`, `string`, `tuple` or `rowdata`.
    uid
        Uid of the operator in the job. Either this or `operator_id` is needed.
    operator_id
        Id of the operator, as 16 bytes or in hexadecimal (`setUidHash`).
    operator
        Spark's operator number; required if several operators are stateful.
    value
        Type of values: `plain`, `rowdata` or `row`.
    sql_aggregate
        True to write an aggregate as that of a `GROUP BY` of Flink SQL.
    source_uids
        Uids of sources in the job by Spark's name of the source, such as `{"0": "orders"}`, or the uid of the only
        source. A `KafkaSource` with this uid continues from the positions of the query; for other sources, the
        operator has them as text.
    max_parallelism
        Number of key groups, 1 to 32,768. The job must have the same, or not set it.
    id
        The checkpoint; by default the newest with a committed batch.
    force
        True to proceed although a driver is running the query on this machine.
    dry_run
        True to check everything that can be checked without reading rows, and write nothing.
    progress
        Called with the amount done and the total.

    Returns
    -------
    The exported states, with the statements in Java that declare them.

    Raises
    ------
    ValueError
        An argument is not one of the above.
    LocationInUseError
        See `force`.
    TargetNotEmptyError
        The target is not empty.
    NoCheckpointError, CheckpointNotFoundError, NotCommittedError
        There is no such checkpoint to continue from.
    StateNotFoundError
        No such operator or source, or one must be selected.
    UnsupportedForFlinkError
        The operator, a key or a value cannot be in a savepoint of Flink. Nothing was written.
    FlinkRowError
        A row does not fit into its type in Flink. The savepoint has no `_metadata`, so Flink finds none.
    SparkCkptError
        The state cannot be read, or the target not be written.
    """
    forms = Forms(KeyForm(key), ValueForm(value), sql_aggregate)
    into = _target(uid, operator_id, max_parallelism)
    path = os.fspath(location)
    storage, chosen = CheckpointLocation.open(path).copy_source(id)
    if not force:
        check_no_known_driver(storage)
    record = find_record(storage, chosen)
    new = storage_at(os.fspath(target))
    if new.list(""):
        raise TargetNotEmptyError(new.location)
    uids = {ONLY: source_uids} if isinstance(source_uids, str) else source_uids
    plan = plan_operator(open_state(path, record.id), operator, into, forms, uids)
    return export_plan(plan, new, dry_run=dry_run, progress=progress)


def _target(uid: str | None, operator_id: bytes | str | None, max_parallelism: int) -> Target:
    if (uid is None) == (operator_id is None):
        raise ValueError("give the uid of the operator in the Flink job, or its id, and not both")
    if not 0 < max_parallelism <= MAX_KEY_GROUPS:
        raise ValueError(f"a max parallelism of {max_parallelism} is not within 1 to {MAX_KEY_GROUPS}")
    if uid is not None:
        return Target.of_uid(uid, max_parallelism)
    assert operator_id is not None
    content = bytes.fromhex(operator_id) if isinstance(operator_id, str) else operator_id
    if len(content) != OPERATOR_ID_BYTES:
        raise ValueError(f"an operator id has {OPERATOR_ID_BYTES} bytes, not {len(content)}")
    return Target(content, None, max_parallelism)
