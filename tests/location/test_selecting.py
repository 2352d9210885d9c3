"""Selection of a checkpoint by id, tag or time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from spark_ckpt.errors import SavepointLocationError
from spark_ckpt.location.errors import (
    ForeignLocationError,
    NoCheckpointAtTimeError,
    TagNotFoundError,
)
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.selecting import selected_id
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.tagging import tag_checkpoint, untag_checkpoint
from spark_ckpt.storage import LocalStorage
from tests.support.queries import Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Query with checkpoints 4 to 7, of batches 2 to 5."""
    return make_query(tmp_path / "q")


def at(query: Query) -> CheckpointLocation:
    return CheckpointLocation.open(query.storage.location)


def time_of(query: Query, checkpoint_id: int) -> datetime:
    (found,) = [record for record in at(query).checkpoints() if record.id == checkpoint_id]
    return datetime.fromtimestamp(found.timestamp_ms / 1000, timezone.utc)


def test_an_id_and_the_newest_need_no_request(tmp_path: Path) -> None:
    nowhere = CheckpointLocation.open(str(tmp_path / "nowhere"))
    assert selected_id(nowhere, 7) == 7
    assert selected_id(nowhere, None) is None


def test_a_tag(query: Query) -> None:
    tag_checkpoint(query.storage, 5, "a")
    assert selected_id(at(query), "a") == 5
    with pytest.raises(TagNotFoundError, match="no tag 'b'; available: a"):
        selected_id(at(query), "b")


def test_a_time(query: Query) -> None:
    last = time_of(query, 7)
    assert selected_id(at(query), last) == 7
    assert selected_id(at(query), last.replace(tzinfo=None)) == 7
    assert selected_id(at(query), last + timedelta(days=1)) == 7
    assert selected_id(at(query), last.astimezone(timezone(timedelta(hours=5)))) == 7
    assert selected_id(at(query), time_of(query, 5)) == 5
    assert selected_id(at(query), time_of(query, 6) - timedelta(milliseconds=1)) == 5
    with pytest.raises(NoCheckpointAtTimeError, match=r"no checkpoint there was complete at .*: the oldest was") as e:
        selected_id(at(query), time_of(query, 4) - timedelta(milliseconds=1))
    assert e.value.first_ms == round(time_of(query, 4).timestamp() * 1000)


def test_a_time_finds_a_checkpoint_that_only_a_tag_retains(query: Query) -> None:
    then = time_of(query, 5)
    tag_checkpoint(query.storage, 5, "a")
    query.run(range(6, 12))
    assert selected_id(at(query), then) == 5
    untag_checkpoint(query.storage, "a")
    with pytest.raises(NoCheckpointAtTimeError):
        selected_id(at(query), then)


def test_a_savepoint_has_a_time_and_no_tags(query: Query, tmp_path: Path) -> None:
    take_savepoint(query.storage, LocalStorage(tmp_path / "s"))
    savepoint = CheckpointLocation.open(str(tmp_path / "s"))
    assert selected_id(savepoint, time_of(query, 7)) == 7
    with pytest.raises(SavepointLocationError):
        selected_id(savepoint, "a")


def test_another_directory_has_no_tags(tmp_path: Path) -> None:
    with pytest.raises(ForeignLocationError):
        selected_id(CheckpointLocation.open(str(tmp_path)), "a")
