"""What a task reads and writes, without Spark: it opens the storage itself. `tests/spark/test_evolve_in_tasks.py` has
real tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.serializers import CPickleSerializer

from spark_ckpt import read_state
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.layout import new_merged_path
from spark_ckpt.evolution.choices import NO_CHOICES
from spark_ckpt.evolution.in_place import evolve_in_place
from spark_ckpt.evolution.spark_tasks import _chain, _InTask, _without_storage
from spark_ckpt.evolution.store_rewrite import StoreRewrite
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.operations.verify import verify
from tests.edit.hashed_state import HashedState, counts
from tests.evolution.planned import USER, planned
from tests.support.clocks import NoClock
from tests.support.invariants import assert_invariants
from tests.support.meanings import function, meaning
from tests.support.s3 import S3
from tests.support.state_location import schema
from tests.support.uploads import copy

COUNT, NAME, TOTAL = function("count(1)"), function("first(0.name)", ("name",)), function("sum(0.v)")
CHANGED = planned(USER, schema(sum="long", count="long"), ("0.user",), (TOTAL, COUNT))


def arrived(sent: Any) -> Any:
    """What arrives in another process of Spark."""
    serializer: Any = CPickleSerializer()
    return serializer.loads(serializer.dumps(sent))


class InTurn:
    """Tasks that run one after the other, each with what arrives of it."""

    def __init__(self, location: str) -> None:
        self.location = location

    def suit(self, rewrite: StoreRewrite) -> bool:
        return rewrite.keeps_places

    def chains(self, rewrite: StoreRewrite, begins: Callable[[str], None]) -> list[Chain]:
        paths = tuple(new_merged_path() for _ in range(rewrite.partitions))
        for path in paths:
            begins(path)
        task = _InTask(_without_storage(rewrite), self.location, {}, paths)
        written = [arrived(task).keep(partition) for partition in range(rewrite.partitions)]
        return [_chain(rows, segment) for _, rows, segment in arrived(written)]


@pytest.fixture
def query(tmp_path: Path) -> HashedState:
    return counts(tmp_path / "q", users=6)


@pytest.mark.parametrize("remote", [False, True])
def test_tasks_open_the_storage_themselves(query: HashedState, request: pytest.FixtureRequest, remote: bool) -> None:
    place = query.path
    if remote:
        s3: S3 = request.getfixturevalue("s3")
        place = f"{s3.url}/q"
        copy(query.directory, place)
    before = read_state(place).to_arrow().to_pylist()
    earlier = replace(CHANGED, meaning=meaning(("0.user",), (COUNT, NAME)))
    location = CheckpointLocation.open(place)
    choices = replace(NO_CHOICES, functions={"sum(v)": None})
    evolve_in_place(
        location,
        lambda _: CHANGED,
        choices,
        plan_earlier=lambda _: earlier,
        force=True,
        clock=NoClock(),
        tasks=InTurn(place),
    )
    after = {each["key"]["user"]: tuple(each["value"].values()) for each in read_state(place).to_arrow().to_pylist()}
    assert after == {each["key"]["user"]: (None, each["value"]["count"]) for each in before}
    assert verify(location.storage, everything=True).is_whole
    if not remote:
        assert_invariants(query.storage, orphans=True)
