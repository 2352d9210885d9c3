"""Differences between the positions of sources."""

from __future__ import annotations

from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.spark_files.source_positions import positions_of
from spark_ckpt.state.source_changes import PositionChange, position_changes


def source(name: str, offset: str | None) -> SourceState:
    return SourceState(name, b"", () if offset is None else positions_of(offset))


def changes(before: SourceState | None, after: SourceState | None) -> list[PositionChange]:
    sides = ([] if each is None else [each] for each in (before, after))
    return list(position_changes(*sides))


def test_partitions_are_compared_one_by_one() -> None:
    before, after = '{"orders":{"0":5,"1":7},"old":{"0":1}}', '{"orders":{"0":9,"1":7,"2":0}}'
    gone, moved, new = changes(source("0", before), source("0", after))
    assert (gone.change, gone.before, gone.after) == ("delete", positions_of('{"old":{"0":1}}')[0], None)
    assert gone.position == gone.before
    assert moved == PositionChange("0", positions_of(before)[1], positions_of(after)[0])
    assert (moved.change, moved.position) == ("update", moved.after)
    assert (new.change, new.before, new.after) == ("insert", None, positions_of(after)[2])


def test_equal_positions_are_no_changes() -> None:
    kafka = source("0", '{"orders":{"0":5}}')
    assert changes(kafka, kafka) == []
    assert changes(None, None) == []


def test_a_source_with_one_position() -> None:
    (change,) = changes(source("0", '{"logOffset":3}'), source("0", '{"logOffset":4}'))
    assert change.change == "update"
    (change,) = changes(source("0", '{"a":[1]}'), source("0", '{"a":[2]}'))
    assert (change.change, change.position.kind) == ("update", "unknown")


def test_a_source_that_begins_or_ends() -> None:
    files = source("files", '{"logOffset":3}')
    for none in (None, source("files", None)):
        assert [change.change for change in changes(none, files)] == ["insert"]
        assert [change.change for change in changes(files, none)] == ["delete"]


def test_a_source_that_another_kind_replaces() -> None:
    gone, new = changes(source("0", "17"), source("0", '{"logOffset":3}'))[::-1]
    assert (gone.change, gone.position.kind, new.change, new.position.kind) == ("delete", "number", "insert", "file")


def test_changes_are_in_the_order_of_the_second_checkpoint() -> None:
    before = [source("c", "1"), source("a", "1")]
    after = [source("b", "2"), source("a", "2")]
    assert [change.source for change in position_changes(before, after)] == ["b", "a", "c"]
