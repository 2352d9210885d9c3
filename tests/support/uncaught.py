"""Uncaught errors of our code in each Spark driver and executor that a test starts.

A test during which one is lost fails, although neither Spark nor Python sees it.

A plugin for Spark (`jvm-shim/uncaught`) writes each into a file. Environment variables bring it into all JVMs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.class_archive import SUBMIT_OPTIONS
from tests.support.java import compile_java_jar
from tests.support.provider import REPOSITORY

SOURCES = REPOSITORY / "jvm-shim" / "uncaught"
PLUGIN = "io.github.sparkckpt.uncaught.UncaughtPlugin"
CLASS_PATH = "SPARK_DIST_CLASSPATH"
"""Variable with what Spark's scripts and workers append to the class path of each JVM."""


class UncaughtErrors:
    """The errors of the JVMs that this process and its children start from now on.

    Args:
        folder: existing folder for the files of the errors.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def watch(self) -> None:
        """Brings the plugin into the JVMs."""
        if shutil.which("javac") is None:
            return
        properties = {"spark.plugins": PLUGIN, "spark.test.uncaught": str(self.folder)}
        options = [f"-D{key}={value}" for key, value in properties.items()]
        given = os.environ.get(SUBMIT_OPTIONS, "").split()
        before = [option for option in given if option.partition("=")[0][2:] not in properties]
        os.environ[SUBMIT_OPTIONS] = " ".join([*before, *options])
        entries = [entry for entry in os.environ.get(CLASS_PATH, "").split(os.pathsep) if entry]
        jar = str(plugin_jar())
        os.environ[CLASS_PATH] = os.pathsep.join([*(entry for entry in entries if entry != jar), jar])

    def take(self) -> list[str]:
        """The errors since the last call, each with its process, its thread and its stack trace."""
        texts = []
        for file in sorted(self.folder.glob("*.txt")):
            texts.append(file.read_text(encoding="utf-8"))
            file.unlink()
        return texts

    def check(self) -> None:
        """Asserts that there are none."""
        found = self.take()
        assert not found, "\n\n".join([f"{len(found)} uncaught errors in JVMs:", *found])


@contextmanager
def all_caught(folder: Path) -> Iterator[None]:
    """Watches the JVMs that a program starts in the block, and fails at its end if an error was lost in one.

    Args:
        folder: new folder for the files of the errors.
    """
    folder.mkdir(parents=True)
    errors = UncaughtErrors(folder.resolve())
    errors.watch()
    yield
    errors.check()


def plugin_jar() -> Path:
    """The jar with the plugin, compiled for this environment if its sources have changed."""
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCES.rglob("*.java")))).hexdigest()[:12]
    jar = Path(sys.prefix) / f"uncaught-{digest}.jar"
    if not jar.exists():
        with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
            compile_java_jar(SOURCES, Path(folder) / "build").replace(jar)
    return jar


@pytest.fixture(scope="session", autouse=True)
def uncaught_errors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UncaughtErrors]:
    """Errors of all JVMs of this run; those that come after the last test fail that one."""
    errors = UncaughtErrors(tmp_path_factory.mktemp("uncaught"))
    errors.watch()
    yield errors
    errors.check()


@pytest.fixture(autouse=True)
def no_uncaught_errors(uncaught_errors: UncaughtErrors) -> Iterator[None]:
    """Fails each test during which a JVM lost an error."""
    yield
    uncaught_errors.check()
