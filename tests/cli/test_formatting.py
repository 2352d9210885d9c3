from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.cli.formatting import plain, summarise
from spark_ckpt.cli.results.inspection import Inspection
from spark_ckpt.figures import count, human_size
from spark_ckpt.location.find import FoundCheckpoint
from spark_ckpt.metadata import CheckpointMetadata
from tests.metadata.strategies import KEYED, OPERATOR_STATE, checkpoints


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (-1, "unknown size"),
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (1023 * 1024, "1,023.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (2**63, "8,192.0 PiB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert human_size(size) == text


def test_counts() -> None:
    assert [count(n, "file") for n in (0, 1, 1000)] == ["0 files", "1 file", "1,000 files"]


@given(st.text(max_size=20))
def test_plain_text_is_printable(text: str) -> None:
    assert plain(text).isprintable()


@settings(max_examples=60)
@given(st.none() | KEYED | OPERATOR_STATE)
def test_every_kind_of_handle_has_a_summary(handle: object) -> None:
    text, _ = summarise(handle)
    assert text.isprintable()


@settings(max_examples=40)
@given(checkpoints(3))
def test_every_kind_of_metadata_has_a_description(metadata: CheckpointMetadata) -> None:
    described = Inspection.of(FoundCheckpoint("path", 1, metadata)).to_json()
    assert len(described["operator_states"]) == len(metadata.operator_states)  # type: ignore[arg-type]
