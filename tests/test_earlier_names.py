"""Imports that documentation of earlier releases shows still work."""

from __future__ import annotations

import spark_ckpt.flink.streams.serializers
import spark_ckpt.metadata.streams.serializers
from spark_ckpt.flink import streams
from spark_ckpt.flink.tables import read
from spark_ckpt.metadata.streams import KeyedState, StateFiles
from spark_ckpt.state.flink import list_flink_states, read_flink_state


def test_streams_are_below_the_metadata() -> None:
    assert KeyedState is streams.KeyedState
    assert StateFiles is streams.StateFiles
    earlier, now = spark_ckpt.metadata.streams.serializers, spark_ckpt.flink.streams.serializers
    assert earlier.read_serializer is now.read_serializer


def test_states_of_flink_are_beside_those_of_queries() -> None:
    assert list_flink_states is read.list_flink_states
    assert read_flink_state is read.read_flink_state
