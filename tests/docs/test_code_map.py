"""The code map has every room, and its commands lead to tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import DOCS, REPOSITORY

PYTEST = ".venv/bin/python -m pytest "
MAVEN = "mvn -q -B -f jvm-shim/pom.xml -pl "


class Module(NamedTuple):
    """Module in Scala: its folder, its root package, and what Maven takes to test it alone. The rooms of its packages
    begin with the last part of the root package.
    """

    folder: Path
    package: str
    options: str

    @property
    def top(self) -> str:
        return self.package.rpartition(".")[2]

    def owns(self, room: str) -> bool:
        return re.match(rf"{self.top}\b", room) is not None


ENGINE = Module(Path("jvm-shim/engine/src"), "io.github.sparkckpt.engine", "engine ")
SHIM = Module(Path("jvm-shim/shim/src"), "org.apache.spark.sql.ckpt", "shim -am -Dspark.minor=4.2 ")
MODULES = (ENGINE, SHIM)


def rows() -> list[list[str]]:
    """Cells of all rows of all tables."""
    lines = (DOCS / "code-map.md").read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in tables if not line.startswith("| room ")]


def rooms() -> set[str]:
    return {room for row in rows() for room in re.findall(r"`([^`]+)`", row[0])}


def commands() -> list[str]:
    return [row[-1].strip("`") for row in rows()]


def python_rooms(root: Path) -> set[str]:
    """Packages of the library, and modules beside them."""
    library = root / "spark_ckpt"
    packages = {path.parent.relative_to(root).as_posix() + "/" for path in library.rglob("__init__.py")}
    modules = {path.relative_to(root).as_posix() for path in library.glob("*.py") if not path.name.startswith("__")}
    return packages - {"spark_ckpt/"} | modules


def scala_rooms(module: Module, root: Path) -> set[str]:
    """Packages of a module, by the part of their name that begins with that of its root package."""
    below = module.package.replace(".", "/")
    found = set()
    for sources in (root / module.folder / "main").glob("scala*"):
        for path in (sources / below).rglob("*.scala"):
            found.add(".".join((module.top, *path.parent.relative_to(sources / below).parts)))
    return found


def missing(command: str, root: Path) -> Iterator[str]:
    """What a command tests and is not there."""
    if command.startswith(PYTEST):
        yield from (path for path in command.removeprefix(PYTEST).split() if not (root / path).exists())
        return
    for module in MODULES:
        selected = re.fullmatch(re.escape(MAVEN + module.options) + r"-D(suites|\w+Suites)=(\S+) verify", command)
        if selected is not None:
            yield from missing_suites(module, selected[1], selected[2], root)
            return
    yield command


def missing_suites(module: Module, kind: str, name: str, root: Path) -> Iterator[str]:
    """The name of suites in a command for a module, if there are none."""
    folders = [root / module.folder / sources / "scala" / name.replace(".", "/") for sources in ("test", "test-core")]
    found = [
        folder.with_suffix(".scala").exists() if kind == "suites" else any(folder.glob("*Suite*.scala"))
        for folder in folders
    ]
    if not any(found):
        yield name


def test_each_package_is_a_room() -> None:
    assert {room for room in rooms() if room.startswith("spark_ckpt/")} == python_rooms(REPOSITORY)
    for module in MODULES:
        assert {room for room in rooms() if module.owns(room)} == scala_rooms(module, REPOSITORY)


def test_the_other_rooms_are_there() -> None:
    others = {
        room for room in rooms() if not (room.startswith("spark_ckpt/") or any(module.owns(room) for module in MODULES))
    }
    assert others
    assert [room for room in sorted(others) if not (REPOSITORY / room).is_dir()] == []


def test_each_command_tests_something() -> None:
    assert len(commands()) > 40
    assert [gap for command in commands() for gap in missing(command, REPOSITORY)] == []


def test_the_file_to_open_first_is_there() -> None:
    for row in rows():
        if len(row) < 4:
            continue
        room = re.findall(r"`([^`]+)`", row[0])[0]
        folder = Path(room).parent if room.endswith(".py") else Path(room)
        for module in MODULES:
            if module.owns(room):
                package = f"{module.package}{room.removeprefix(module.top)}"
                folder = module.folder / "main" / "scala" / package.replace(".", "/")
        for name in re.findall(r"`([^`]+)`", row[2]):
            assert (REPOSITORY / folder / name).is_file(), f"{room}: {name}"


def test_the_map_names_no_command_twice() -> None:
    assert len(set(commands())) == len(commands())


@pytest.mark.parametrize(
    ("command", "gaps"),
    [
        (f"{PYTEST}tests/storage tests/gone", ["tests/gone"]),
        (f"{MAVEN}{ENGINE.options}-DwildcardSuites={ENGINE.package}.backend verify", []),
        (f"{MAVEN}{ENGINE.options}-DwildcardSuites={SHIM.package}.store verify", [f"{SHIM.package}.store"]),
        (f"{MAVEN}{SHIM.options}-DwildcardSuites={SHIM.package}.gone verify", [f"{SHIM.package}.gone"]),
        (f"{MAVEN}{SHIM.options}-Dsuites={SHIM.package}.StoreInterfacesSuite verify", []),
        (f"{MAVEN}{SHIM.options}-Dsuites={SHIM.package}.GoneSuite verify", [f"{SHIM.package}.GoneSuite"]),
        ("make test", ["make test"]),
    ],
)
def test_a_command_that_tests_nothing_is_found(command: str, gaps: list[str]) -> None:
    assert list(missing(command, REPOSITORY)) == gaps


def test_a_package_without_a_room_is_found(tmp_path: Path) -> None:
    for path in (
        "spark_ckpt/new/deep/__init__.py",
        "spark_ckpt/new/__init__.py",
        "spark_ckpt/module.py",
        "spark_ckpt/__init__.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("", encoding="utf-8")
    package = Path(SHIM.package.replace(".", "/"))
    source = tmp_path / SHIM.folder / "main" / "scala-since-4.1" / package / "compat" / "New.scala"
    source.parent.mkdir(parents=True)
    source.write_text("", encoding="utf-8")
    assert python_rooms(tmp_path) == {"spark_ckpt/new/", "spark_ckpt/new/deep/", "spark_ckpt/module.py"}
    assert scala_rooms(SHIM, tmp_path) == {"ckpt.compat"}
    assert scala_rooms(ENGINE, tmp_path) == set()
