"""Positions that a source can continue at."""

from __future__ import annotations

import re

import pytest

from spark_ckpt.operations.offset_rules import only_advances, why_not

KAFKA = '{"t":{"0":5,"1":7}}'
DELTA = '{"reservoirId":"a","reservoirVersion":4,"index":2,"isStartingVersion":false}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (KAFKA, '{"t":{"0":0,"1":9}}'),
        (KAFKA, '{"t":{"0":0,"1":9,"2":4}}'),
        (KAFKA, '{"other":{"0":3}}'),
        (None, KAFKA),
        (None, '{"logOffset":-1}'),
        ('{"logOffset":3}', '{"logOffset":-1}'),
        ('{"logOffset":3}', '{"logOffset":4}'),
        ("17", "0"),
        (DELTA, DELTA.replace("4", "1")),
        ('{"made":"up"}', '{"made":"down"}'),
    ],
)
def test_a_position(before: str | None, after: str) -> None:
    assert why_not("0", before, after, last_entry=4) is None


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (KAFKA, "{}", "of another kind of source"),
        (KAFKA, '{"logOffset":3}', "of another kind of source"),
        (KAFKA, "no JSON", "of another kind of source"),
        (KAFKA, '{"t":{"0":5}}', "topic t, but not its partitions 1; name all"),
        (KAFKA, '{"t":{"0":-2,"1":-2}}', "-2 is no offset of topic t; --to earliest"),
        (KAFKA, KAFKA + "\n1", "must be one line"),
        (KAFKA, " ", "must be one line"),
        ('{"logOffset":3}', '{"logOffset":5}', "entries 0 to 4, so a position is -1 .* to 4; found 5"),
        ('{"logOffset":3}', '{"logOffset":-2}', "found -2"),
        ("17", "-1", "-1 is negative"),
        (DELTA, DELTA.replace('"a"', '"b"'), "a and b are two Delta tables"),
    ],
)
def test_no_position(before: str, after: str, reason: str) -> None:
    found = why_not("0", before, after, last_entry=4)
    assert found is not None
    assert found.startswith("source 0")
    assert re.search(reason, found), found


@pytest.mark.parametrize(
    ("before", "after", "advances"),
    [
        (KAFKA, '{"t":{"0":5,"1":9}}', True),
        (KAFKA, '{"t":{"0":4,"1":9}}', False),
        (KAFKA, '{"t":{"0":5,"1":9,"2":0}}', True),
        (KAFKA, '{"other":{"0":9}}', False),
        (None, KAFKA, False),
        ('{"logOffset":3}', '{"logOffset":4}', True),
        ('{"logOffset":3}', '{"logOffset":2}', False),
        (DELTA, DELTA.replace("4", "5"), True),
        (DELTA, DELTA.replace('"index":2', '"index":1'), False),
        ('{"made":"up"}', '{"made":"down"}', False),
        ('{"made":"up"}', '{"made":"up"}', True),
    ],
)
def test_a_source_that_only_advances(before: str | None, after: str, advances: bool) -> None:
    assert only_advances(before, after) is advances
