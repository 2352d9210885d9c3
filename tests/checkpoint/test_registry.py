from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.checkpoint.registry import SharedStateRegistry


def test_a_file_is_unused_when_the_last_checkpoint_is_dropped() -> None:
    registry = SharedStateRegistry()
    registry.register(1, ["a", "b"])
    registry.register(2, ["b", "c"])
    assert registry.unregister(1) == ["a"]
    assert "b" in registry
    assert "a" not in registry
    assert registry.files() == {"b", "c"}
    assert registry.unregister(2) == ["b", "c"]


def test_registering_again_changes_nothing() -> None:
    registry = SharedStateRegistry()
    registry.register(1, ["a"])
    registry.register(1, ["a", "b"])
    assert registry.unregister(1) == ["a"]


def test_dropping_what_is_not_there_frees_nothing() -> None:
    registry = SharedStateRegistry()
    registry.register(1, ["a"])
    assert registry.unregister(2) == []
    registry.unregister(1)
    assert registry.unregister(1) == []


def test_nothing_is_unused_while_a_checkpoint_may_refer_to_anything() -> None:
    registry = SharedStateRegistry()
    registry.register(1, ["a", "b"])
    registry.register_unread(2)
    registry.register(3, ["b"])
    assert not registry.is_whole
    assert registry.unregister(1) == []
    assert "a" in registry
    assert registry.files() == {"b"}
    assert registry.unregister(2) == ["a"]
    assert registry.is_whole
    assert "a" not in registry
    assert registry.unregister(3) == ["b"]


def test_files_that_are_held_are_unused_once_all_checkpoints_are_known() -> None:
    registry = SharedStateRegistry()
    registry.register_unread(1)
    registry.register(2, ["a"])
    registry.hold(["a", "b", "c"])
    assert registry.unregister(2) == []
    registry.register(3, ["c"])
    assert registry.unregister(1) == ["a", "b"]
    assert registry.unregister(3) == ["c"]


@given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.sampled_from("abcdef"))), max_size=40))
def test_a_file_is_known_exactly_while_a_checkpoint_refers_to_it(steps: list[tuple[int, set[str]]]) -> None:
    registry = SharedStateRegistry()
    model: dict[int, set[str]] = {}
    for checkpoint, files in steps:
        if checkpoint in model:
            gone = model.pop(checkpoint) - set().union(*model.values())
            assert set(registry.unregister(checkpoint)) == gone
        else:
            model[checkpoint] = files
            registry.register(checkpoint, files)
        assert registry.files() == set().union(*model.values())
