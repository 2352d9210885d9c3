"""Operator ids of uids, as Flink computes them."""

from __future__ import annotations

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.flink.export.operator_id import operator_id_of
from tests.metadata.corpus import NEWER_FLINK


def test_ids_are_those_of_flinks_own_files() -> None:
    # Files of version 5 and later have both.
    operators = [operator for vector in NEWER_FLINK for operator in m.load(vector.path).operator_states if operator.uid]
    assert len({operator.uid for operator in operators}) >= 3
    for operator in operators:
        assert operator.uid is not None
        assert operator_id_of(operator.uid) == operator.operator_id


@pytest.mark.parametrize(
    ("uid", "expected"),
    [
        # Results of Guava's `murmur3_128`, which Flink calls.
        ("", "00000000000000000000000000000000"),
        ("The quick brown fox jumps over the lazy dog", "6c1b07bc7bbc4be347939ac4a93c437a"),
    ],
)
def test_ids_are_those_of_guava(uid: str, expected: str) -> None:
    assert operator_id_of(uid).hex() == expected
