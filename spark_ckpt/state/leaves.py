"""Types of Arrow with other types in place of those that have no parts."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


def with_leaves(kind: pa.DataType, of: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with every part that is neither struct, list nor map replaced.

    Args:
        kind: the type.
        of: what stands for a part; also for a struct without fields.
    """
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([pa.field(field.name, with_leaves(field.type, of)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(with_leaves(kind.value_type, of))
    if pa.types.is_map(kind):
        return pa.map_(with_leaves(kind.key_type, of), with_leaves(kind.item_type, of))
    return of(kind)
