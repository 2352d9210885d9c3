"""Readers refuse files with features of a later release that this release would misread."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.batch import SPARK_BATCH, SparkBatch
from spark_ckpt.cli.options import FAILED, REFUSED
from spark_ckpt.completed import decode_record
from spark_ckpt.errors import UnsupportedFormatError
from spark_ckpt.features import Feature
from spark_ckpt.metadata import load
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.storage import LocalStorage
from tests.completed.records import changed
from tests.support.cli import run
from tests.support.provider import REPOSITORY
from tests.support.queries import OPERATORS, Query, make_query

FUTURE = "from-the-future"
COMMANDS = ("list", "inspect", "verify", "state", "savepoint", "rescale", "gc", "history")


def in_metadata(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the newest `_metadata` require an unknown feature."""
    with monkeypatch.context() as patch:
        patch.setattr(SparkBatch, "features", property(lambda self: {FUTURE}))
        Query(LocalStorage(location)).restart()
        query = Query(LocalStorage(location))
        batch = query.restart()
        query.run(range(batch, batch + 1))


def in_record(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the newest record require an unknown feature."""
    newest = max(location.glob("ckpt/completed/*.json"))
    newest.write_bytes(changed(decode_record(newest.read_bytes(), newest.name), features=[FUTURE]))


def contents(location: Path) -> dict[str, bytes]:
    return {str(path.relative_to(location)): path.read_bytes() for path in location.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", [in_metadata, in_record])
def test_every_command_refuses_and_changes_nothing(
    place: Callable[[Path, pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "q"
    make_query(location)
    place(location, monkeypatch)
    before = contents(location)
    further: dict[str, list[object]] = {"savepoint": [tmp_path / "s"], "rescale": ["--partitions", "8", "--force"]}
    refused = set()
    for command in COMMANDS:
        done = run(command, location, *further.get(command, []), "--json")
        if done.status:
            assert done.status in ((FAILED, REFUSED) if command == "gc" else (REFUSED,)), done.stderr
            assert FUTURE in done.error["message"] and "Upgrade spark-ckpt" in done.error["message"]
            refused.add(command)
    # `list` reads only records and `history` only statistics, so a feature in `_metadata` does not affect them.
    assert refused >= set(COMMANDS) - ({"list", "history"} if place is in_metadata else set()), refused
    assert contents(location) == before


@pytest.mark.parametrize("place", [in_metadata, in_record])
@pytest.mark.parametrize("on_damage", ["fail", "rollBack"])
def test_a_start_refuses_and_neither_claims_nor_goes_back(
    place: Callable[[Path, pytest.MonkeyPatch], None], on_damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "q"
    make_query(location)
    place(location, monkeypatch)
    before = contents(location)
    query = Query(LocalStorage(location), settings={"retained": "4", "onDamage": on_damage})
    with pytest.raises(UnsupportedFormatError, match=FUTURE):
        query.restart()
    assert {name: data for name, data in contents(location).items() if name in before} == before
    assert not [name for name in contents(location).keys() - before.keys() if name.startswith("ckpt/")]


def test_a_rescale_that_divides_key_groups_names_its_features(tmp_path: Path) -> None:
    """Rescaling requires a feature, because a reader that ignores the filters would count rows twice."""
    make_query(tmp_path / "q", operators=OPERATORS[:1])
    storage = LocalStorage(tmp_path / "q")
    rescale(storage, 3, force=True)
    newest = max(tmp_path.glob("q/ckpt/completed/*.json"))
    metadata = load(str(tmp_path / "q" / "ckpt" / json.loads(newest.read_bytes())["metadata"]["path"]))
    (payload,) = (state.payload for state in metadata.master_states if state.name == SPARK_BATCH)
    assert json.loads(payload)["features"] == ["partition-filters", "shared-handles"]
    without = json.loads(payload)
    del without["features"]  # as written by releases without features
    assert SparkBatch.decode(json.dumps(without).encode()).stores[0].segments.filters


def test_a_plain_checkpoint_needs_no_feature(tmp_path: Path) -> None:
    """A checkpoint without new features stays readable for older releases."""
    make_query(tmp_path / "q")
    for file in tmp_path.glob("q/ckpt/completed/*.json"):
        content = json.loads(file.read_bytes())
        assert content.get("features") == (["seen-records"] if content["kind"] == "claim" else None)
    for file in tmp_path.glob("q/ckpt/chk-*/_metadata"):
        (payload,) = (state.payload for state in load(str(file)).master_states if state.name == SPARK_BATCH)
        assert "features" not in json.loads(payload)


def test_the_shim_knows_the_same_features() -> None:
    (file,) = (REPOSITORY / "jvm-shim" / "shim" / "src" / "main").rglob("FormatDescription.scala")
    found = re.search(r"Features: Set\[String\] = Set\((.*?)\)", file.read_text(), re.DOTALL)
    assert found is not None
    assert set(re.findall(r'"(.+?)"', found[1])) == {feature.value for feature in Feature}
