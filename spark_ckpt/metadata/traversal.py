"""Traversal of the nested objects of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeGuard, TypeVar, cast

_T = TypeVar("_T")


def parts_of(value: object) -> Iterator[object]:
    """Value and all objects of the model within it, outermost first."""
    if is_dataclass(value):
        yield value
        for field in fields(value):
            yield from parts_of(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from parts_of(item)
    elif _holds_parts(value):
        for item in value:
            yield from parts_of(item)


def with_parts(value: _T, change: Callable[[Any], Any]) -> _T:
    """Copy of the value, with `change` applied to every object of the model within it, innermost first, and to itself.

    Args:
        value: checkpoint, or a part of one.
        change: returns its argument, or another object of the same class.
    """
    return cast(_T, _with_parts(value, change))


def _with_parts(value: object, change: Callable[[Any], Any]) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in fields(value)}
        new = {name: item for name in old if (item := _with_parts(old[name], change)) is not old[name]}
        return change(replace(value, **new) if new else value)
    if isinstance(value, Mapping):
        items = {key: _with_parts(item, change) for key, item in value.items()}
        return items if any(items[key] is not value[key] for key in items) else value
    if _holds_parts(value):
        elements = tuple(_with_parts(item, change) for item in value)
        return elements if any(a is not b for a, b in zip(elements, value, strict=True)) else value
    return value


def _holds_parts(value: object) -> TypeGuard[tuple[object, ...]]:
    # Skips tuples of offsets: they can be long, and contain no objects of the model.
    return isinstance(value, tuple) and bool(value) and not isinstance(value[0], int)
