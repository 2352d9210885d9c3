from __future__ import annotations

from pathlib import Path

from spark_ckpt.storage import LocalStorage, delete_tree, files_below


def tree(directory: Path) -> LocalStorage:
    for name in ("b/2", "b/1", "b/.hidden", "a/deep/.dir/x", "a/deep/3", "top"):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return LocalStorage(directory)


def test_files_are_in_order_and_hidden_ones_are_told_apart(tmp_path: Path) -> None:
    storage = tree(tmp_path)
    assert list(files_below(storage, "")) == ["a/deep/3", "b/1", "b/2", "top"]
    assert list(files_below(storage, "b", hidden=True)) == ["b/.hidden", "b/1", "b/2"]
    assert list(files_below(storage, "a", hidden=True)) == ["a/deep/.dir/x", "a/deep/3"]
    assert list(files_below(storage, "missing")) == []


def test_a_deleted_tree_leaves_nothing_and_the_root_stays(tmp_path: Path) -> None:
    storage = tree(tmp_path)
    delete_tree(storage, "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "top"]
    delete_tree(storage, "")
    assert list(tmp_path.iterdir()) == []
    delete_tree(storage, "missing")
