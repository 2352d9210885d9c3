"""Shape of a command's output: its words, without the figures, names and widths that vary between runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

GAP = "..."
"""A line that stands for any number of lines, or an ending that stands for the rest of its line."""

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_SIZE = re.compile(r"\S*\d\S* (?:bytes|B|KiB|MiB|GiB)\b")
_TIME = re.compile(r"\S*\d\S* (?:ms|s|min|h)\b")
_WITH_DIGIT = re.compile(r"[^\s\[\](),:]*\d[^\s\[\](),:]*")
_REPEATED = re.compile(r"(#)(?:, #)+")


def shape(line: str) -> str:
    """The line with # for each word that contains a digit, single spaces, and each list of figures reduced to one."""
    line = _SIZE.sub("#size", _THOUSANDS.sub("", line))
    line = _TIME.sub("#time", line)
    line = _WITH_DIGIT.sub("#", line)
    return _REPEATED.sub(r"\1", " ".join(line.split()))


def missing_line(shown: Sequence[str], printed: Sequence[str]) -> str | None:
    """First line of a page that is not printed directly after the previous one, or, after a gap, anywhere after it.

    A shown line that ends with `GAP` matches by prefix.
    """
    shapes = [shape(line) for line in printed]
    position = 0
    may_skip = False
    for line in shown:
        if line.strip() == GAP:
            may_skip = True
            continue
        candidates = range(position, len(shapes) if may_skip else min(position + 1, len(shapes)))
        found = next((index for index in candidates if _matches(line, shapes[index])), None)
        if found is None:
            return line
        position, may_skip = found + 1, False
    return None


def _matches(line: str, printed: str) -> bool:
    if line.endswith(GAP):
        return printed.startswith(shape(line.removesuffix(GAP)).rstrip(","))
    return shape(line) == printed
