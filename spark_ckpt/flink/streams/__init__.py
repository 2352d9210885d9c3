"""Readers of the state streams that a `_metadata` file refers to; they need neither Spark nor Flink.

    files = StateFiles("file:/checkpoints/8520ebf5/chk-17/_metadata")
    with files.open(handle.delegate_state_handle) as stream:
        state = KeyedState(handle, stream, operator.max_parallelism)
        for group in state.key_groups():
            for entry in state.entries(group):
                print(state.header.states[entry.state].name, entry.parts[Part.KEY].value, entry.parts[Part.VALUE].value)

Only one piece of a stream is in memory at a time, regardless of its size. Values are decoded if their Flink serializer
is known. RocksDB files are not such streams: they can be opened, but not decoded.
"""

from __future__ import annotations

from spark_ckpt.flink.streams.changelog import METADATA_KEY_GROUP, read_changes
from spark_ckpt.flink.streams.channel_state import read_buffers
from spark_ckpt.flink.streams.entries import Datum, Entry, Part
from spark_ckpt.flink.streams.errors import (
    StateFileOutsideError,
    StateFileSizeError,
    StateStreamFormatError,
    UnknownSerializerError,
)
from spark_ckpt.flink.streams.headers import (
    BackendStateType,
    KeyedHeader,
    OperatorHeader,
    StateMetaInfoSnapshot,
    read_keyed_header,
)
from spark_ckpt.flink.streams.keyed_state import KeyedState, KeyGroup, Layout
from spark_ckpt.flink.streams.operator_state import ManagedOperatorState
from spark_ckpt.flink.streams.raw_state import read_raw_parts
from spark_ckpt.flink.streams.state_files import StateFiles, StateStream
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.values import Timer, TimeWindow, Value

__all__ = [
    "METADATA_KEY_GROUP",
    "BackendStateType",
    "Datum",
    "Entry",
    "KeyGroup",
    "KeyedHeader",
    "KeyedState",
    "Layout",
    "ManagedOperatorState",
    "OperatorHeader",
    "Part",
    "Serializer",
    "StateFileOutsideError",
    "StateFileSizeError",
    "StateFiles",
    "StateMetaInfoSnapshot",
    "StateStream",
    "StateStreamFormatError",
    "TimeWindow",
    "Timer",
    "UnknownSerializerError",
    "Value",
    "read_buffers",
    "read_changes",
    "read_keyed_header",
    "read_raw_parts",
]
