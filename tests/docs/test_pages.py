"""Everything that the pages name exists."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import spark_ckpt
from spark_ckpt.cli.main import main
from spark_ckpt.config import PREFIX, SETTINGS
from spark_ckpt.errors import SparkCkptError
from tests.docs.pages import PAGES, REPOSITORY, command_lines, spans
from tests.support.cli import commands

by_name = pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(REPOSITORY).as_posix() for page in PAGES])


def lines_of(program: str) -> list[tuple[Path, list[str]]]:
    """Arguments of all command lines of a program, with their pages."""
    split = [(page, line.split(" #")[0].split()) for page in PAGES for line in command_lines(page)]
    return [(page, words[1:]) for page, words in split if words[:1] == [program]]


def own_lines() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for line in command_lines(page):
            if line.startswith("spark-ckpt "):
                yield page, line.removeprefix("spark-ckpt ")


def test_every_command_is_one_that_the_program_takes() -> None:
    known, commands_by_name = list(own_lines()), commands()
    assert len(known) > 30
    # Commands inherit the names of the help option from the first context.
    program = click.Context(main, **main.context_settings)
    for page, line in known:
        name, *arguments = shlex.split(line, comments=True)
        command = commands_by_name.get(name)
        assert command is not None, f"{page.name}: there is no spark-ckpt {name}"
        try:
            command.make_context(name, arguments, parent=program)
        except click.MissingParameter:
            # Inline text may name a command without its arguments.
            assert all(argument.startswith("-") for argument in arguments), f"{page.name}: spark-ckpt {line}"
        except click.UsageError as error:
            pytest.fail(f"{page.name}: spark-ckpt {line}: {error.format_message()}")


def test_every_command_is_on_some_page() -> None:
    named = {line.split()[0] for _, line in own_lines()}
    assert set(commands()) <= named


def test_every_make_target_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = lines_of("make")
    assert len(called) > 20
    for page, words in called:
        assert words[0] in targets, f"{page.name}: make {words[0]}"


def test_every_extra_can_be_installed() -> None:
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    section = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = ", section, re.MULTILINE))
    named = [(page, words[-1]) for page, words in lines_of("pip") if "[" in words[-1]]
    assert named
    for page, requirement in named:
        assert set(re.findall(r"\[([\w,]+)\]", requirement)[0].split(",")) <= extras, f"{page.name}: {requirement}"


@by_name
def test_every_setting_is_one(page: Path) -> None:
    suffixes = {setting.suffix for setting in SETTINGS}
    groups = {suffix.split(".")[0] for suffix in suffixes if "." in suffix}
    text = page.read_text(encoding="utf-8")
    keys = {key.rstrip(".") for key in re.findall(re.escape(PREFIX) + r"([\w.]+)", text)}
    dotted = {span for span in spans(page) if re.fullmatch(rf"({'|'.join(groups)})\.\w+", span)}
    assert keys | dotted <= suffixes


@pytest.fixture(scope="module")
def errors() -> set[str]:
    """Names of all errors: those of the library, and those that the provider gives to its failures."""
    for module in pkgutil.walk_packages(spark_ckpt.__path__, "spark_ckpt."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    names = {SparkCkptError.__name__, *(error.__name__ for error in below(SparkCkptError))}
    for source in (REPOSITORY / "jvm-shim" / "shim" / "src" / "main").rglob("*.scala"):
        names |= set(re.findall(r'CheckpointFailure\("(\w+)"', source.read_text(encoding="utf-8")))
    return names


def below(base: type[Exception]) -> Iterator[type[Exception]]:
    for error in base.__subclasses__():
        yield error
        yield from below(error)


@by_name
def test_every_error_is_one(page: Path, errors: set[str]) -> None:
    assert {span for span in spans(page) if re.fullmatch(r"[A-Z]\w+Error", span)} <= errors


@by_name
def test_every_file_of_the_repository_is_there(page: Path) -> None:
    top = "|".join(path.name for path in REPOSITORY.iterdir() if path.is_dir() and not path.name.startswith("."))
    named = {span for span in spans(page) if re.fullmatch(rf"(?:{top})/[\w./-]*", span)}
    made = tuple(line for line in (REPOSITORY / ".gitignore").read_text().splitlines() if line.endswith("/"))
    assert not {path for path in named if not path.startswith(made) and not (REPOSITORY / path).exists()}


def test_every_link_of_the_readme_leads_somewhere() -> None:
    for page in (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
        assert links
        for link in links:
            assert (REPOSITORY / link).exists(), f"{page.name}: {link}"
