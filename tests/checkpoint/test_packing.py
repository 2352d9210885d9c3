"""Compressed texts, well-formed and malicious."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from spark_ckpt.checkpoint import packing as packing_module
from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.errors import MetadataTooLargeError
from spark_ckpt.checkpoint.packing import MAX_BYTES, Packing, Unpacking, packed
from spark_ckpt.errors import CheckpointError
from tests.support.memory import traced_peak

MIB = 1 << 20


def bomb(mib: int, start: bytes = b"") -> str:
    """Decompression bomb of `mib` MiB of zeros, built without holding them in memory."""
    compressor = zlib.compressobj(9)
    parts = [compressor.compress(start), *(compressor.compress(bytes(MIB)) for _ in range(mib)), compressor.flush()]
    return base64.b64encode(b"".join(parts)).decode()


BOMB = bomb(300)


def batch(**fields: str) -> bytes:
    """A `spark-batch` with one subtask and one segment."""
    columns = [np.array([1], "<i4"), np.array([1], "<i4"), np.array([9], "<i8")]
    store: dict[str, Any] = {
        "operator_id": 0,
        "store": "default",
        "name": "x",
        "parallelism": 1,
        "state_format_version": None,
        "rows": [0],
        "ckpt_ids": base64.b64encode(bytes(16)).decode(),
        "segments": packed(b"".join(column.tobytes() for column in columns)),
    }
    header = {
        "batch_id": 0,
        "version": 1,
        "query_id": "q",
        "run_id": "r",
        "spark_version": "4.2.0",
        "checkpoint_format": 1,
        "max_parallelism": 1,
        "key_group_factors": [1],
        "sources": [],
    }
    return json.dumps({**header, "stores": [store | fields]}).encode()


def refused(payload: bytes) -> None:
    with pytest.raises(CheckpointError, match="spark-batch"):
        SparkBatch.decode(payload)


@pytest.mark.parametrize(
    "fields",
    [
        {"segments": BOMB},
        {"segments": bomb(300, np.array([2**31 - 1], "<i4").tobytes())},
        {"shared": BOMB},
    ],
    ids=["segments", "count", "shared"],
)
def test_a_text_of_a_known_length_is_not_read_any_further(fields: dict[str, str]) -> None:
    assert SparkBatch.decode(batch()).stores[0].segments.sizes.tolist() == [9]
    payload = batch(**fields)
    assert traced_peak(lambda: refused(payload)) < 6 * len(payload)


def test_all_texts_together_have_a_limit() -> None:
    assert traced_peak(lambda: refused(batch(filters=BOMB))) < 2 * MAX_BYTES + 8 * MIB
    unpacking = Unpacking(most=100)
    assert unpacking.whole(packed(bytes(60))) == bytes(60)
    with pytest.raises(ValueError, match="exceed the limit of 100 bytes"):
        unpacking.whole(packed(bytes(41)))
    assert unpacking.whole(packed(bytes(40))) == bytes(40)


def test_what_is_written_is_within_what_a_reader_accepts() -> None:
    packing = Packing(most=100)
    assert packing.packed(bytes(60)) == packed(bytes(60))
    assert packing.packed(bytes(40))
    with pytest.raises(MetadataTooLargeError, match="exceed 100 bytes"):
        packing.packed(b"1")


def test_a_batch_that_no_reader_would_accept_is_not_encoded() -> None:
    """The limit is one number, for all texts of all stores together."""
    store = SparkBatch.decode(batch()).stores[0]
    several = replace(SparkBatch.decode(batch()), stores=(store, store))
    with patch.object(packing_module, "MAX_BYTES", 32):
        assert SparkBatch.decode(several.encode()).stores[1].segments.sizes.tolist() == [9]
    with patch.object(packing_module, "MAX_BYTES", 31):
        with pytest.raises(MetadataTooLargeError):
            several.encode()
        with pytest.raises(CheckpointError, match="exceed the limit of 31 bytes"):
            SparkBatch.decode(batch(filters=packed(b"{" + b" " * 40 + b"}")))


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(zlib.compress(bytes(50))[:-1]).decode(),
        base64.b64encode(zlib.compress(bytes(50))[:-5]).decode(),
        base64.b64encode(b"no zlib").decode(),
        "no base64",
        "",
    ],
)
def test_a_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Unpacking().whole(text)
    with pytest.raises(ValueError):  # noqa: PT011
        read_in_parts(text)


def read_in_parts(text: str) -> None:
    stream = Unpacking().stream(text)
    stream.read(50)
    stream.finish()


def test_a_text_is_read_in_parts() -> None:
    data = bytes(range(200))
    stream = Unpacking().stream(packed(data))
    assert [stream.read(n) for n in (0, 150, 0, 50)] == [b"", data[:150], b"", data[150:]]
    stream.finish()
    with pytest.raises(ValueError, match="ends after"):
        Unpacking().stream(packed(data)).read(201)
    stream = Unpacking().stream(packed(data))
    stream.read(199)
    with pytest.raises(ValueError, match="trailing bytes"):
        stream.finish()


def test_json_that_nests_without_end_is_refused() -> None:
    refused(b"[" * 200_000)
    refused(batch(filters=packed(b"[" * 200_000)))
