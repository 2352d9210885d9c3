"""State ids: the id of the state of one store in one subtask.

Text as in Spark's commit log (`RocksDBStateStoreProvider` takes `UUID.toString`). Releases before 0.2 wrote the same 16
bytes as 32 hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

STATE_ID_BYTES = 16
"""Bytes of a state id."""

is_state_id = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
"""Match of a state id, or None."""

_is_undashed = re.compile("[0-9a-f]{32}").fullmatch


def canonical_state_id(text: str) -> str:
    """State id with dashes. Other text, such as an id of another provider, is returned unchanged."""
    return _dashed(text) if _is_undashed(text) else text


def encode_state_ids(ids: Sequence[str]) -> bytes:
    """The bytes of state ids, 16 each.

    Raises:
        ValueError: one is not a state id.
    """
    return bytes.fromhex("".join(ids).replace("-", ""))


def decode_state_ids(data: bytes) -> tuple[str, ...]:
    """The state ids in bytes, 16 each."""
    return tuple(_dashed(data[i : i + STATE_ID_BYTES].hex()) for i in range(0, len(data), STATE_ID_BYTES))


def _dashed(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
