"""`read_state`: state as a lazy table, of a query of Spark or of a Flink job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.flink.tables.read import FlinkScan
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.selecting import Selection, selected_id
from spark_ckpt.state.catalog import open_state
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.state.filter import parse_filter
from spark_ckpt.state.read import StateScan
from spark_ckpt.state.scan import Scan
from spark_ckpt.state.views import Side, choose_view


def read_state(
    location: str | os.PathLike[str],
    *,
    operator: int | str | None = None,
    store: str | None = None,
    variable: str | None = None,
    side: Side | None = None,
    id: Selection = None,  # noqa: A002  (the word of the command)
    where: str | None = None,
    limit: int | None = None,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
) -> Scan:
    """The state of a query, or the keyed state of a Flink job, as a lazy table, without Spark and Flink.

    The columns are those of Spark's `statestore` data source: `key`, `value`, `partition_id`. A list variable has
    `list_element` for each element; a map variable `user_map_key` and `user_map_value` for each entry; timers have
    `expiration_timestamp_ms`. State of Flink also has `key_group`, and `namespace` if it has namespaces, such as
    windows; values of unknown classes are structs of `class` and `bytes`.

    Args:
        location: checkpoint location of the query, or a checkpoint, savepoint or job directory of Flink, as a path or
            URL.
        operator: Spark's operator number; required if several operators are stateful. In Flink, the operator's id in
            hexadecimal, its uid or its name; required if several operators have a state of the same name.
        store: name of the store; required if the operator has several. Flink has none.
        variable: state variable of a `transformWithState`, or a column family; in Flink, name of the state.
        side: side of a join, `left` or `right`, as in Spark's `joinSide`. Flink has none.
        id: the checkpoint, by its id, by its tag, or by a time for the newest one that was complete then, in UTC unless
            it has a time zone; by default the newest.
        where: condition on rows, such as `key.user = 'a' and value.count > 3` (see `parse_filter`).
        limit: maximum number of rows.
        moved: pairs of old and new directories of files of a Flink checkpoint that was moved.
        allow_outside: True to open files outside the Flink checkpoint's own storage.

    Raises:
        StateNotFoundError: no such operator, store, state variable or side, or one must be selected.
        TagNotFoundError, NoCheckpointAtTimeError: no checkpoint has the tag, or was complete by then.
        FilterError: the condition is invalid.
        StateSchemaError: one of Spark's schema files is missing or damaged.
        UnsupportedStateError: only Spark can read the state.
        UnsupportedFlinkStateError: the state of Flink cannot be read as rows.
        SparkCkptError: no such checkpoint, or it cannot be read.
    """
    path = os.fspath(location)
    checkpoint_id = selected_id(CheckpointLocation.open(path), id) if isinstance(id, (str, datetime)) else id
    flink = find_flink_state(path, checkpoint_id, moved=moved, allow_outside=allow_outside)
    if flink is not None:
        if store is not None or side is not None:
            reason = "the state of a Flink job has neither stores nor sides: choose an operator and a state variable"
            raise StateNotFoundError(path, reason, [state.name for state in flink.states()])
        state = flink.choose(operator, variable)
        return FlinkScan(flink, state, None if where is None else parse_filter(where, state.columns.schema), limit)
    catalog = open_state(path, checkpoint_id)
    view = choose_view(catalog, operator, store, variable, side)
    return StateScan(catalog, view, None if where is None else parse_filter(where, view.schema), limit)
