"""Plots as inline SVG: self-contained, without a script. Colours and fonts come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TypeAlias

from spark_ckpt.cli.formatting import plain

WIDTH, HEIGHT = 960, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 10, 10, 24
_TICKS = 4
_X_LABELS = 12
_MIN_WIDTH = 1.5
"""Narrowest bar, so that a short checkpoint in a long timeline stays visible."""

Format: TypeAlias = Callable[[int], str]
"""Text of a value."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one figure, one per checkpoint.

    Args:
        name: name in the legend.
        style: class of the style sheet.
        values: the values, not negative; None where there is none.
    """

    name: str
    style: str
    values: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a timeline.

    Args:
        start: time of its begin.
        length: its duration, in the unit of `start`.
        style: class of the style sheet.
        tip: text that appears under the pointer.
    """

    start: int
    length: int
    style: str
    tip: str


def text(value: object) -> str:
    """Text for HTML or an attribute: markup and control characters are escaped."""
    return escape(plain(str(value)), quote=True)


def bar_chart(name: str, labels: Sequence[str], stack: Sequence[Series], show: Format) -> str:
    """Bars with the values of all series on top of each other.

    Args:
        name: description of the plot.
        labels: text of each checkpoint at the horizontal axis and in the tips.
        stack: the series, from the bottom.
        show: text of a value.
    """
    sums = [sum(series.values[i] or 0 for series in stack) for i in range(len(labels))]
    top = _axis_end(max(sums, default=0))
    parts = [*_value_axis(top, show), *_label_axis(labels)]
    width = _plot_width() / max(1, len(labels))
    for i, label in enumerate(labels):
        below = 0
        for series in stack:
            value = series.values[i]
            if not value:
                continue
            y, height = _y(below + value, top), _y(below, top) - _y(below + value, top)
            below += value
            tip = f"{label}, {series.name}: {show(value)}"
            parts.append(_rectangle(_LEFT + i * width, y, max(width * 0.8, 0.5), height, series.style, tip))
    return _plot(name, parts, stack)


def line_chart(name: str, labels: Sequence[str], lines: Sequence[Series], show: Format) -> str:
    """A line per series, interrupted where it has no value.

    Args:
        name: description of the plot.
        labels: text of each checkpoint at the horizontal axis and in the tips.
        lines: the series.
        show: text of a value.
    """
    top = _axis_end(max((value for line in lines for value in line.values if value is not None), default=0))
    parts = [*_value_axis(top, show), *_label_axis(labels)]
    width = _plot_width() / max(1, len(labels))
    for line in lines:
        points = [
            None if value is None else (_LEFT + (i + 0.4) * width, _y(value, top))
            for i, value in enumerate(line.values)
        ]
        for is_there, group in groupby(points, lambda point: point is not None):
            if is_there:
                path = " ".join(f"{x:.1f},{y:.1f}" for x, y in filter(None, group))
                parts.append(f'<polyline class="{text(line.style)}" points="{path}"/>')
        for point, value, label in zip(points, line.values, labels, strict=True):
            if point is not None and value is not None:
                tip = text(f"{label}, {line.name}: {show(value)}")
                parts.append(
                    f'<circle class="{text(line.style)}" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="2.5">'
                    f"<title>{tip}</title></circle>"
                )
    return _plot(name, parts, lines)


def timeline(name: str, bars: Sequence[Bar], show: Format) -> str:
    """Bars along a time axis, as a figure of a page.

    Args:
        name: description of the plot.
        bars: the bars.
        show: text of a time.
    """
    return _figure(name, _timeline(name, bars, show), ())


def timeline_picture(name: str, bars: Sequence[Bar], show: Format, style: str) -> str:
    """Bars along a time axis, as the content of an SVG file.

    Args:
        name: description of the plot.
        bars: the bars.
        show: text of a time.
        style: style sheet of the picture.
    """
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
    drawing = _timeline(name, bars, show).replace("<svg ", head, 1)
    return drawing.replace(">", f"><style>{style}</style>", 1)


def _timeline(name: str, bars: Sequence[Bar], show: Format) -> str:
    first = min((bar.start for bar in bars), default=0)
    span = max(1, max((bar.start + bar.length for bar in bars), default=0) - first)
    height, scale = 60, _plot_width() / span
    parts = []
    for i in range(_TICKS + 1):
        x = _LEFT + _plot_width() * i / _TICKS
        anchor = "start" if i == 0 else "end" if i == _TICKS else "middle"
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - _BOTTOM}"/>')
        label = text(show(first + span * i // _TICKS))
        parts.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="{anchor}">{label}</text>')
    for bar in bars:
        x, width = _LEFT + (bar.start - first) * scale, max(_MIN_WIDTH, bar.length * scale)
        parts.append(_rectangle(x, _TOP, width, height - _TOP - _BOTTOM, bar.style, bar.tip))
    return _svg(name, parts, height)


def _svg(name: str, parts: Sequence[str], height: int) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{text(name)}">{"".join(parts)}</svg>'


def _plot(name: str, parts: Sequence[str], legend: Sequence[Series]) -> str:
    return _figure(name, _svg(name, parts, HEIGHT), legend)


def _figure(name: str, drawing: str, legend: Sequence[Series]) -> str:
    names = [
        f'<span class="key"><span class="swatch {text(series.style)}"></span>{text(series.name)}</span>'
        for series in legend
    ]
    return f"<figure><figcaption>{text(name)} {''.join(names)}</figcaption>{drawing}</figure>"


def _rectangle(x: float, y: float, width: float, height: float, style: str, tip: str) -> str:
    return (
        f'<rect class="{text(style)}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
        f"<title>{text(tip)}</title></rect>"
    )


def _plot_width() -> int:
    return WIDTH - _LEFT - _RIGHT


def _y(value: int, top: int) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / top


def _axis_end(maximum: int) -> int:
    """End of a value axis: a value that the ticks divide."""
    return max(_TICKS, -(-maximum // _TICKS) * _TICKS)


def _value_axis(top: int, show: Format) -> Iterator[str]:
    for i in range(_TICKS + 1):
        value = top * i // _TICKS
        y = _y(value, top)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text(show(value))}</text>'


def _label_axis(labels: Sequence[str]) -> Iterator[str]:
    step = max(1, -(-len(labels) // _X_LABELS))
    width = _plot_width() / max(1, len(labels))
    for i in range(0, len(labels), step):
        x = _LEFT + (i + 0.4) * width
        yield f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{text(labels[i])}</text>'
