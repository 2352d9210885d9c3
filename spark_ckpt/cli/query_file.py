"""A query in a file of Python: `job.py:build`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class QueryFile(click.ParamType):  # type: ignore[type-arg]  # generic in some releases of click only
    """A parameter `FILE:NAME`: the path of a file, and the name of a function in it."""

    name = "FILE:NAME"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[Path, str]:
        """The path and the name."""
        if isinstance(value, tuple):
            return value
        path, colon, name = str(value).rpartition(":")
        if not colon or not name.isidentifier():
            self.fail(f"'{value}' is not FILE:NAME, such as job.py:build", param, ctx)
        return Path(path), name


def load_query(file: tuple[Path, str], spark: SparkSession) -> Any:  # noqa: ANN401  (a DataFrame or its writer)
    """Runs the file, and calls the function, with the session if it takes an argument.

    Args:
        file: path of the file, and name of the function.
        spark: the session.

    Raises:
        UsageError: the file has no such function.
    """
    path, name = file
    sys.path.insert(0, str(path.resolve().parent))  # for modules beside it
    if not path.is_file():
        raise click.UsageError(f"there is no file '{path}'")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"'{path}' is no file of Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    build = getattr(module, name, None)
    if not callable(build):
        raise click.UsageError(f"'{path}' has no function {name}")
    return build(spark) if inspect.signature(build).parameters else build()
