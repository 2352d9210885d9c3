"""Speed of the checks."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def without_collections() -> Iterator[None]:
    """Turns the garbage collector off: it would walk through all syntax trees again and again, most of the time."""
    gc.disable()
    yield
    gc.enable()
