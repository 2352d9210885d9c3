"""Shape of a location's content: formats, versions and field names, without values."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spark_ckpt.checkpoint.batch import SPARK_BATCH
from spark_ckpt.format.segments import HEADER_BYTES, MAGIC
from spark_ckpt.metadata import load

_BLOCK = struct.Struct(">iBBBBiqii")


def shape_of(location: Path) -> set[str]:
    """One text per format and field in use below `ckpt`. A savepoint has its record at the top level."""
    shape: set[str] = set()
    for record in [*location.glob("ckpt/completed/*.json"), *location.glob("savepoint.json")]:
        fields = json.loads(record.read_bytes())
        shape.update(f"{fields['kind']} record: {field}" for field in _fields(fields))
        shape.add(f"record format {fields['format']}")
        shape.update(f"{fields['kind']} record feature {feature}" for feature in fields.get("features", ()))
    for metadata in [*location.glob("ckpt/chk-*/_metadata"), *location.glob("_metadata")]:
        shape.update(_of_metadata(metadata))
    for file in location.glob("ckpt/shared/*"):
        shape.add(f"state file {_pattern(file.name)}")
        shape.update(_of_blocks(file.read_bytes()))
    return shape


def _of_metadata(path: Path) -> Iterator[str]:
    metadata = load(str(path))
    yield f"metadata version {metadata.version}"
    for state in metadata.master_states:
        yield f"master state {state.name} version {state.version}"
        if state.name == SPARK_BATCH or state.payload[:1] == b"[":
            content = json.loads(state.payload)
            yield from (f"{state.name}: {field}" for field in _fields(content))
            if isinstance(content, dict):
                yield from (f"{state.name} feature {feature}" for feature in content.get("features", ()))
    for operator in metadata.operator_states:
        for subtask in operator.subtask_states.values():
            yield f"keyed state {type(subtask.managed_keyed_state).__name__}"


def _of_blocks(data: bytes) -> Iterator[str]:
    position = 0
    while position < len(data):
        magic, version, _, codec, _, _, _, _, length = _BLOCK.unpack_from(data, position)
        assert magic == MAGIC, f"no block at {position}"
        yield f"block version {version}, codec {codec}"
        position += HEADER_BYTES + length


def _fields(content: Any, path: str = "") -> Iterator[str]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _fields(value, f"{path}.{name}" if path else name)
    elif isinstance(content, list):
        yield path + "[]"
        for value in content:
            yield from _fields(value, path + "[]")
    else:
        yield path


def _pattern(name: str) -> str:
    return name.partition("-")[0] + "-"
