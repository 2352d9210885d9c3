"""State as JSON."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from spark_ckpt.cli.describe import Json, JsonObject
from spark_ckpt.cli.state_rows import Exported, ShownDiff, ShownRows
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.types import Struct
from spark_ckpt.state.views import View


def describe_state(catalog: StateCatalog) -> JsonObject:
    """The stores of a checkpoint, and the types of their rows."""
    return {
        "location": catalog.location,
        "checkpoint_id": catalog.found.metadata.checkpoint_id,
        "batch_id": catalog.batch.batch_id,
        "version": catalog.batch.version,
        "stores": [_store(store) for store in catalog.stores],
    }


def describe_rows(shown: ShownRows) -> JsonObject:
    """Which rows they are, and the rows."""
    scan = shown.scan
    return {
        **_view(scan.view, scan.catalog),
        "columns": _columns(scan.schema),
        "rows": [*shown.rows],
        "has_more": shown.has_more,
    }


def describe_export(exported: Exported) -> JsonObject:
    """Which rows they are, and where they were written."""
    scan = exported.scan
    return {
        **_view(scan.view, scan.catalog),
        "target": exported.target,
        "target_format": exported.kind,
        "row_count": exported.rows,
    }


def describe_diff(shown: ShownDiff) -> JsonObject:
    """Which rows are compared, and what changed."""
    diff = shown.diff
    return {
        **_view(diff.view_after, diff.after),
        "before_id": diff.before.found.metadata.checkpoint_id,
        "columns": _columns(diff.schema),
        "counts": {**shown.counts},
        "changes": [*shown.rows],
    }


def _view(view: View, catalog: StateCatalog) -> JsonObject:
    return {
        "location": catalog.location,
        "checkpoint_id": catalog.found.metadata.checkpoint_id,
        "operator_id": view.store.state.operator_id,
        "store": view.store.state.store,
        "variable": view.family.name,
    }


def _store(store: Store) -> JsonObject:
    state = store.state
    return {
        "operator_id": state.operator_id,
        "name": state.name,
        "store": state.store,
        "parallelism": state.parallelism,
        "state_format_version": state.state_format_version,
        "rows": sum(state.rows),
        "state_bytes": int(state.segments.sizes.sum()),
        "families": [
            {
                "name": family.name,
                "kind": store.variables[family.name].value if family.name in store.variables else None,
                "key": _fields(family.key),
                "value": _fields(family.value),
            }
            for family in store.families
        ],
    }


def _fields(kind: Struct) -> Json:
    return _columns(kind.arrow)


def _columns(fields: Iterable[pa.Field]) -> Json:
    return [{"name": field.name, "type": str(field.type)} for field in fields]
