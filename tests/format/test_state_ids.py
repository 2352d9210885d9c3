"""State ids."""

from __future__ import annotations

import uuid

import pytest

from spark_ckpt.format.state_ids import canonical_state_id, decode_state_ids, encode_state_ids, is_state_id


def test_bytes_and_text() -> None:
    ids = tuple(str(uuid.uuid4()) for _ in range(3))
    assert encode_state_ids(ids) == b"".join(uuid.UUID(text).bytes for text in ids)
    assert decode_state_ids(encode_state_ids(ids)) == ids
    assert all(is_state_id(text) for text in ids)


def test_ids_of_earlier_releases_lack_dashes() -> None:
    id_ = uuid.uuid4()
    assert canonical_state_id(id_.hex) == canonical_state_id(str(id_)) == str(id_)
    assert encode_state_ids([id_.hex]) == id_.bytes


@pytest.mark.parametrize("text", ["", "short", "g" * 32, "A" * 32])
def test_other_text_stays(text: str) -> None:
    assert canonical_state_id(text) == text
    assert not is_state_id(text)
