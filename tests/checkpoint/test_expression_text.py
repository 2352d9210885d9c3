"""Texts of Spark's expressions for people."""

from __future__ import annotations

import pytest

from spark_ckpt.checkpoint.expression_text import is_window, worded
from tests.support.meanings import MINUTE, window


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (window(5 * MINUTE, 5 * MINUTE), "window(0.ts, 5 min long)"),
        (window(5 * MINUTE, MINUTE), "window(0.ts, 5 min long, every 1 min)"),
        (window(5 * MINUTE, 5 * MINUTE, MINUTE), "window(0.ts, 5 min long, from 1 min on)"),
        ("precisetimestampconversion(x % 5)", "a time window"),
        ("upper(0.k)", "upper(0.k)"),
    ],
)
def test_a_window_has_few_words(text: str, words: str) -> None:
    assert worded(text) == words
    assert is_window(text) is ("window" in words)
