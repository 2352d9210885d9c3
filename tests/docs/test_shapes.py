from __future__ import annotations

import pytest

from tests.docs.shapes import missing_line, shape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("20     13  2026-11-21T12:10:09.811Z     61 ms    1.2 MiB", "2  1  2023-11-14T22:13:20.000Z  1.2 s  0 bytes"),
        ("├── chain: base v15 87.5 KiB, delta v16 67.6 KiB", "├── chain: base v1 5 bytes, delta v2 1 KiB"),
        ("1,024 key groups, chain [4, 2, 2]", "16 key groups, chain [2]"),
    ],
)
def test_figures_do_not_matter(one: str, other: str) -> None:
    assert shape(one) == shape(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("ID  BATCH", "ID  STATE"), ("3 rows", "3 files"), ("└── 3", "├── 3"), ("a: 1", "a 1"), ("1 2", "1")],
)
def test_words_do(one: str, other: str) -> None:
    assert shape(one) != shape(other)


PRINTED = ["head", "1 row", "2 rows", "foot: a, b, c"]


@pytest.mark.parametrize(
    "shown",
    [["head", "7 row"], ["head", "...", "foot: a, b, c"], ["...", "3 rows", "foot: a, ..."], ["head", "  ..."], []],
)
def test_finds_what_is_printed(shown: list[str]) -> None:
    assert missing_line(shown, PRINTED) is None


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (["head", "3 rows"], "3 rows"),
        (["...", "foot: a, b, c", "head"], "head"),
        (["1 row"], "1 row"),
        (["head", "...", "foot: b, ..."], "foot: b, ..."),
        (["head", "7 row", "8 rows", "foot: a, b"], "foot: a, b"),
    ],
)
def test_names_the_line_that_is_not(shown: list[str], missing: str) -> None:
    assert missing_line(shown, PRINTED) == missing
