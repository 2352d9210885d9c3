"""The file by which a command and a driver agree on another number of partitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_ckpt.errors import CheckpointError
from spark_ckpt.location.rescale_request import (
    REQUEST,
    RescaleAnswer,
    RescaleRequest,
    answer_request,
    create_request,
    delete_request,
    read_request,
)
from spark_ckpt.storage import LocalStorage

FIELDS = {"format": 1, "token": "t", "partitions": 8, "asked_ms": 5, "answer": None}
ANSWER = {"refused": None, "batch_id": 7, "before": 4}


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        RescaleAnswer(refused="no"),
        RescaleAnswer(batch_id=7, before=4),
        RescaleAnswer(batch_id=0, before=4),
        RescaleAnswer(before=8),
    ],
)
def test_it_is_read_as_it_was_written(storage: LocalStorage, answer: RescaleAnswer | None) -> None:
    assert read_request(storage) is None
    request = RescaleRequest(8, 5, answer=answer)
    assert create_request(storage, request)
    assert read_request(storage) == request
    delete_request(storage)
    delete_request(storage)
    assert read_request(storage) is None


def test_the_first_one_stays(storage: LocalStorage) -> None:
    first = RescaleRequest(8, 5)
    assert create_request(storage, first)
    assert not create_request(storage, RescaleRequest(8, 5))
    assert read_request(storage) == first


def test_each_has_a_name_of_its_own() -> None:
    assert RescaleRequest(8, 5).token != RescaleRequest(8, 5).token


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"8",
        b"[]",
        *(
            json.dumps(fields).encode()
            for fields in (
                {**FIELDS, "format": 2},
                {**FIELDS, "partitions": "8"},
                {**FIELDS, "partitions": True},
                {**FIELDS, "partitions": -1},
                {**FIELDS, "asked_ms": None},
                {**FIELDS, "answer": {}},
                {**FIELDS, "answer": {**ANSWER, "batch_id": 1.5}},
                *({name: value for name, value in FIELDS.items() if name != left_out} for left_out in FIELDS),
            )
        ),
    ],
)
def test_damage_is_named(storage: LocalStorage, data: bytes) -> None:
    storage.write_atomic(REQUEST, data)
    with pytest.raises(CheckpointError) as caught:
        read_request(storage)
    assert storage.describe(REQUEST) in str(caught.value)


def test_only_the_request_that_was_read_is_answered(storage: LocalStorage) -> None:
    request, answer = RescaleRequest(8, 5), RescaleAnswer(batch_id=7, before=4)
    answer_request(storage, request, answer)
    assert read_request(storage) is None
    other = RescaleRequest(8, 5)
    create_request(storage, other)
    answer_request(storage, request, answer)
    assert read_request(storage) == other
    answer_request(storage, other, answer)
    answer_request(storage, other, RescaleAnswer(refused="too late"))
    answered = read_request(storage)
    assert answered is not None
    assert (answered.token, answered.answer) == (other.token, answer)
