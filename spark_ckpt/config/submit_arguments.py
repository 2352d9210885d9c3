"""Jars in the arguments of `spark-submit`, which PySpark takes from PYSPARK_SUBMIT_ARGS."""

from __future__ import annotations

import shlex
from itertools import zip_longest

from spark_ckpt.errors import SessionConfigError

_JARS_SETTING = "spark.jars="


def submitted(arguments: str) -> dict[str, list[str]]:
    """The jars by option: `--jars` and `--conf spark.jars`. The last of each counts.

    Raises:
        SessionConfigError: the arguments are not shell words.
    """
    try:
        words = shlex.split(arguments)
    except ValueError as e:
        raise SessionConfigError(f"PYSPARK_SUBMIT_ARGS cannot be split into words: {e}") from e
    result: dict[str, list[str]] = {}
    for option, value in _options(words):
        if option == "--jars":
            result["--jars"] = _entries(value)
        elif option in ("--conf", "-c") and value.startswith(_JARS_SETTING):
            result["--conf spark.jars"] = _entries(value[len(_JARS_SETTING) :])
    return result


def _options(words: list[str]) -> list[tuple[str, str]]:
    """Options with their values, in the next word or after an equals sign."""
    pairs = []
    for word, following in zip_longest(words, words[1:]):
        option, equals, value = word.partition("=")
        if equals or following is not None:
            pairs.append((option, value if equals else following))
    return pairs


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",") if entry.strip()]
