from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.metadata.modified_utf8 import MalformedUtf8Error, decode, encode
from tests.metadata.strategies import NAME


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("", ""),
        ("a\x7f", "617f"),
        ("\0", "c080"),
        ("\x80\u07ff", "c280dfbf"),
        ("\u0800\uffff", "e0a080efbfbf"),
        ("\U0001f600", "eda0bdedb880"),
        ("\ud83d", "eda0bd"),
    ],
)
def test_known_encodings(text: str, encoded: str) -> None:
    assert encode(text).hex() == encoded
    assert decode(bytes.fromhex(encoded)) == text


@given(NAME)
def test_round_trip(text: str) -> None:
    encoded = encode(text)
    assert 0 not in encoded
    assert decode(encoded) == text


@pytest.mark.parametrize(("encoded", "text"), [("6100", "a\0"), ("c181", "A"), ("e08080", "\0"), ("e081bf", "\x7f")])
def test_what_the_reader_takes_but_no_writer_writes(encoded: str, text: str) -> None:
    assert decode(bytes.fromhex(encoded)) == text


@pytest.mark.parametrize(
    ("encoded", "position"),
    [("61c3", 1), ("c320", 0), ("80", 0), ("6161bf", 2), ("e28020", 0), ("e282", 0), ("f09f9880", 0), ("ff", 0)],
)
def test_malformed(encoded: str, position: int) -> None:
    with pytest.raises(MalformedUtf8Error) as malformed:
        decode(bytes.fromhex(encoded))
    assert malformed.value.position == position


@given(st.binary(max_size=12))
def test_any_bytes_decode_or_are_malformed(encoded: bytes) -> None:
    try:
        text = decode(encoded)
    except MalformedUtf8Error:
        return
    assert decode(encode(text)) == text
