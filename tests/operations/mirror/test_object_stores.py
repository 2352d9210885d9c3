"""From a local disk to S3, and from S3 to S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.location.file_system import storage_at
from spark_ckpt.location.tags import Tags
from spark_ckpt.operations.mirror.failover import fail_over
from spark_ckpt.operations.mirror.following import LocationMirror
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage, Storage
from tests.support.invariants import assert_invariants
from tests.support.queries import Query, make_query
from tests.support.s3 import S3
from tests.support.uploads import copy


@pytest.fixture(params=["local", "s3"])
def source(request: pytest.FixtureRequest, tmp_path: Path, s3: S3) -> Storage:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    make_query(tmp_path / "q")
    if request.param == "local":
        return LocalStorage(tmp_path / "q")
    copy(tmp_path / "q", f"{s3.url}/q")
    return storage_at(f"{s3.url}/q")


def test_it_follows_and_takes_over(source: Storage, s3: S3) -> None:
    target = storage_at(f"{s3.url}/other-region/q")
    mirror = LocationMirror.open(source, target)
    query = Query(source)
    query.restart()
    query.driver.batch(7)
    query.commit(6)
    query.run(range(7, 9))
    for _ in range(2):
        mirror.step()
    assert mirror.last is not None
    assert mirror.last.batch_id == 8
    assert verify(target, everything=True).is_whole
    assert_invariants(target)
    assert Tags(source).list() == []
    done = fail_over(target, source)
    assert (done.is_source_fenced, done.checkpoint.batch_id) == (True, 8)
    there = Query(target)
    assert there.restart() == 9
    assert there.rows() == query.rows()


def test_a_second_process_on_s3_ends_the_first(source: Storage, s3: S3) -> None:
    target = storage_at(f"{s3.url}/other-region/q")
    LocationMirror.open(source, target).step()
    second = LocationMirror.open(source, target)
    assert second.step() is None
    assert_invariants(target)
