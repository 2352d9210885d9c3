"""The pages of the documentation, and the parts of them that can be executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGES = (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^    \S.*\n(?:^ {5,}\S.*\n)*)+", re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_PROMPT = "$ "


@dataclass(frozen=True)
class Block:
    """A fenced block: the word after the fence, and the text."""

    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command line of a console block, and the output that the page shows below it."""

    line: str
    shown: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The command line split like a shell does."""
        return shlex.split(self.line)


def blocks(page: Path, language: str) -> list[str]:
    """Texts of the fenced blocks in a language, in page order."""
    return [block.text for block in _fenced(page.read_text(encoding="utf-8")) if block.language == language]


def console(text: str) -> list[Command]:
    """Commands of a console block."""
    commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith(_PROMPT):
            commands.append(Command(line.removeprefix(_PROMPT), ()))
        else:
            last = commands.pop()
            commands.append(Command(last.line, (*last.shown, line)))
    return commands


def command_lines(page: Path) -> list[str]:
    """All command lines of a page: in fenced blocks, in indented ones, and inline."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in _fenced(text) for line in _joined(block.text)]
    prose = _FENCE.sub("", text)
    lines += [line for part in _INDENTED.findall(prose) for line in _joined(part)]
    lines += _SPAN.findall(_INDENTED.sub("", prose))
    return [line.strip().removeprefix(_PROMPT) for line in lines]


def spans(page: Path) -> list[str]:
    """Texts between backquotes, outside of blocks."""
    return _SPAN.findall(_INDENTED.sub("", _FENCE.sub("", page.read_text(encoding="utf-8"))))


def _fenced(text: str) -> Iterator[Block]:
    return (Block(language, body) for language, body in _FENCE.findall(text))


def _joined(text: str) -> list[str]:
    return text.replace("\\\n", " ").splitlines()
