"""Spark's jars out of PySpark, as a Maven repository of files, for versions that Maven Central lacks.

The repository has one artifact for each jar, and `pyspark:pyspark-jars:<version>`, a POM that depends on all of them.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent / "target" / "pyspark-repository"
GROUP = "pyspark"
ARTIFACT = "pyspark-jars"

DEPENDENCY = """    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
    </dependency>
"""
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <packaging>{packaging}</packaging>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""


class PySparkJarsError(RuntimeError):
    """PySpark's jars cannot be had. The message says why."""


def make_repository(version: str) -> Path:
    """Put the jars of one PySpark version into the repository, unless they are there; return its path.

    The jars are those of the installed PySpark if it has this version, else of a download with pip (450 MB).

    Raises `PySparkJarsError` if pip fails or the download has no jars.
    """
    whole = _pom_path(ARTIFACT, version)
    if not whole.is_file():
        with _jars(version) as jars:
            artifacts = [_add_jar(jar, version) for jar in jars]
        if not artifacts:
            raise PySparkJarsError(f"PySpark {version} has no jars")
        dependencies = "".join(DEPENDENCY.format(group=GROUP, artifact=name, version=version) for name in artifacts)
        # Last: its presence says that the jars are complete.
        _write_pom(ARTIFACT, version, "pom", dependencies)
    return REPOSITORY


@contextmanager
def _jars(version: str) -> Iterator[list[Path]]:
    """The jar files of a PySpark version, for the time of the context."""
    installed = _installed_jars(version)
    if installed is not None:
        yield sorted(installed.glob("*.jar"))
        return
    print(f"downloading PySpark {version} for its jars", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as directory:
        yield _downloaded_jars(version, Path(directory))


def _installed_jars(version: str) -> Path | None:
    """Jars folder of the PySpark of this Python, if it has that version."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations or metadata.version("pyspark") != version:
        return None
    jars = Path(spec.submodule_search_locations[0]) / "jars"
    return jars if jars.is_dir() else None


def _downloaded_jars(version: str, directory: Path) -> list[Path]:
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    command += ["-d", str(directory), f"pyspark=={version}"]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    archives = list(directory.glob("pyspark-*.tar.gz"))
    if result.returncode != 0 or not archives:
        raise PySparkJarsError(f"pip could not download PySpark {version}: {result.stdout.strip()}")
    jars = []
    with tarfile.open(archives[0]) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".jar") and "/deps/jars/" in member.name:
                source = archive.extractfile(member)
                assert source is not None  # a file
                jar = directory / Path(member.name).name
                with source, jar.open("wb") as target:
                    shutil.copyfileobj(source, target)
                jars.append(jar)
    return sorted(jars)


def _add_jar(jar: Path, version: str) -> str:
    """Add a jar under its file name; return the name of the artifact."""
    folder = _pom_path(jar.stem, version).parent
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(jar, folder / f"{jar.stem}-{version}.jar")
    _write_pom(jar.stem, version, "jar", "")
    return jar.stem


def _pom_path(artifact: str, version: str) -> Path:
    return REPOSITORY / GROUP / artifact / version / f"{artifact}-{version}.pom"


def _write_pom(artifact: str, version: str, packaging: str, dependencies: str) -> None:
    path = _pom_path(artifact, version)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = POM.format(group=GROUP, artifact=artifact, version=version, packaging=packaging, dependencies=dependencies)
    partial = path.with_suffix(".tmp")
    partial.write_text(text)
    partial.replace(path)
