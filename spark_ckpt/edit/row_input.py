"""Rows in files of Parquet, Arrow or JSON, or as JSON text, in the types of the state."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import fsspec
import pyarrow as pa
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from spark_ckpt.edit.errors import EditRowError
from spark_ckpt.errors import StorageError

RowSource: TypeAlias = pa.Table | Callable[[pa.Schema], pa.Table]
"""Rows, or a function that reads them in the types of the state."""

_ROWS = "rows"
_ARROW = (".arrow", ".feather", ".ipc")


def table_of(source: RowSource, schema: pa.Schema) -> pa.Table:
    """The rows of a source.

    Args:
        source: the source.
        schema: columns of the state.
    """
    return source if isinstance(source, pa.Table) else source(schema)


def read_rows(source: str, schema: pa.Schema) -> pa.Table:
    """Rows of a file, or in JSON text.

    JSON is an object per line, a list of objects, or the output of `spark-ckpt read --json`. Its values have the types
    of the state. Parquet and Arrow files have types of their own.

    Args:
        source: JSON text, which begins with `{` or `[`, or the path or URL of a file: `.parquet`, `.arrow`, or JSON.
        schema: columns of the state, for JSON.

    Raises:
        EditRowError: the text is no JSON, a column is unknown, or a value does not fit.
        StorageError: the file cannot be read.
    """
    if source.lstrip()[:1] in ("{", "["):
        return _from_json(source, schema)
    try:
        with fsspec.open(source, "rb") as file:
            data: bytes = file.read()
    except (OSError, ValueError, ImportError) as e:
        raise StorageError(source, "read", e) from e
    try:
        if source.endswith(".parquet"):
            return pyarrow.parquet.read_table(io.BytesIO(data))
        if source.endswith(_ARROW):
            return pyarrow.ipc.open_file(io.BytesIO(data)).read_all()
    except (pa.ArrowException, OSError) as e:
        raise EditRowError(source, None, f"the file cannot be read: {e}") from e
    try:
        return _from_json(data.decode(), schema)
    except UnicodeDecodeError as e:
        raise EditRowError(source, None, f"the file is no text: {e}") from e


def _from_json(text: str, schema: pa.Schema) -> pa.Table:
    rows = list(_objects(text))
    for number, row in enumerate(rows):
        _check_fields(row, schema, "", number)
    given = [field for field in schema if any(field.name in row for row in rows)]
    lines = "\n".join(json.dumps(row) for row in rows)
    options = pyarrow.json.ParseOptions(explicit_schema=pa.schema(given), unexpected_field_behavior="error")
    try:
        return pyarrow.json.read_json(io.BytesIO(lines.encode()), parse_options=options)
    except (pa.ArrowException, OSError) as e:
        raise EditRowError("rows", None, f"a value does not have the type of the state: {e}") from None


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    try:
        content = json.loads(text)
    except ValueError:
        try:
            content = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError) as e:
            raise EditRowError("rows", None, f"this is no JSON: {e}") from None
    except RecursionError as e:
        raise EditRowError("rows", None, f"this is no JSON: {e}") from None
    if isinstance(content, dict):
        content = content[_ROWS] if isinstance(content.get(_ROWS), list) else [content]
    for number, row in enumerate(content if isinstance(content, list) else [content]):
        if not isinstance(row, dict):
            raise EditRowError("rows", number, f"expected an object, found {type(row).__name__}")
        yield row


def _check_fields(row: Mapping[str, Any], fields: pa.Schema | pa.StructType, within: str, number: int) -> None:
    """Check that structs have exactly their fields: Arrow reads a missing one as null."""
    names = [field.name for field in fields]
    for name in row:
        if name not in names:
            raise EditRowError(f"{within}{name}", number, f"there is no such column; known are {', '.join(names)}")
    for field in fields:
        if within and field.name not in row:
            raise EditRowError(f"{within}{field.name}", number, "it is missing; write null for no value")
        value = row.get(field.name)
        if pa.types.is_struct(field.type) and isinstance(value, dict):
            _check_fields(value, field.type, f"{within}{field.name}.", number)
