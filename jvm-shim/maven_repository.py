"""A Maven repository with the jar of each Spark minor: jar, sources, POM, checksums, and signatures if wanted.

    python jvm-shim/maven_repository.py dist/maven [--url URL] [--sign KEY]

The jars are those of the wheel, byte for byte. They depend on nothing: everything else is in Spark's distribution.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # the package is not installed in every environment that builds

from spark_ckpt import __version__  # noqa: E402
from spark_ckpt.jars import SUPPORTED_SPARK, jar_name  # noqa: E402

GROUP = "io.github.sparkckpt"
CHECKSUMS = ("md5", "sha1", "sha256", "sha512")
_SCALA = "2.13"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <packaging>jar</packaging>
  <name>{artifact}</name>
  <description>State store provider for Spark Structured Streaming {minor} with Flink-format checkpoints</description>
{url}  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
  <developers>
    <developer>
      <name>The developers of spark-ckpt</name>
    </developer>
  </developers>
{scm}</project>
"""
_JAVADOC = (
    "Programs use this jar by its class names in Spark's settings. They are documented in docs/settings.md of the "
    "sources.\n"
)


class MavenRepositoryError(RuntimeError):
    """The repository cannot be written. The message says what is missing and how to get it."""


def artifact_of(minor: str) -> str:
    """Name of the artifact of a Spark minor."""
    return f"spark-ckpt_{minor}_{_SCALA}"


def write_repository(target: Path, url: str | None = None, key: str | None = None) -> list[Path]:
    """Writes the artifacts of all minors.

    Args:
        target: root of the repository.
        url: address of the project, for the POM; public repositories require one.
        key: id of the GPG key to sign with; None for no signatures.

    Returns:
        The folder of each artifact's version.

    Raises:
        MavenRepositoryError: a jar is missing, or the signature fails.
    """
    folders = []
    for minor in SUPPORTED_SPARK:
        folder = target.joinpath(*GROUP.split("."), artifact_of(minor), __version__)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        files = list(_write_files(folder, minor, url))
        if key is not None:
            files += [_signed(file, key) for file in files]
        for file in files:
            _write_checksums(file)
        folders.append(folder)
    return folders


def folders_of(minor: str, module: Path) -> list[Path]:
    """Source folders of a module that the jar of a minor is compiled from, as the names of the folders say."""
    found = []
    for folder in sorted((module / "src" / "main").iterdir()):
        match = re.fullmatch(r"scala(?:-(before-|since-|)([0-9.]+))?|resources|java", folder.name)
        if match is None:
            raise MavenRepositoryError(f"{folder} is no folder of sources of any Spark minor")
        relation, bound = match[1], match[2]
        own, other = _numbers(minor), _numbers(bound or minor)
        is_in = {"before-": own < other, "since-": own >= other}.get(relation or "", own == other)
        if is_in:
            found.append(folder)
    return found


def main() -> int:
    """Writes the repository."""
    parser = argparse.ArgumentParser(prog="maven_repository.py", description=main.__doc__)
    parser.add_argument("target", type=Path, help="root of the repository")
    parser.add_argument("--url", help="address of the project, which public repositories require")
    parser.add_argument("--sign", metavar="KEY", help="id of the GPG key to sign with")
    arguments = parser.parse_args()
    try:
        for folder in write_repository(arguments.target, arguments.url, arguments.sign):
            print(folder)
    except MavenRepositoryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _write_files(folder: Path, minor: str, url: str | None) -> Iterator[Path]:
    name = f"{artifact_of(minor)}-{__version__}"
    built = ROOT / "spark_ckpt" / "jars" / jar_name(minor, __version__)
    if not built.is_file():
        raise MavenRepositoryError(f"{built} is missing: run 'make jar'")
    jar = folder / f"{name}.jar"
    shutil.copyfile(built, jar)
    yield jar
    pom = folder / f"{name}.pom"
    address = "" if url is None else f"<url>{escape(url)}</url>"
    places = {
        "url": address and f"  {address}\n",
        "scm": address and f"  <scm>\n    {address}\n  </scm>\n",
    }
    pom.write_text(_POM.format(group=GROUP, artifact=artifact_of(minor), version=__version__, minor=minor, **places))
    yield pom
    yield _write_zip(folder / f"{name}-sources.jar", dict(_sources(minor)))
    yield _write_zip(folder / f"{name}-javadoc.jar", {"README": _JAVADOC.encode()})


def _sources(minor: str) -> Iterator[tuple[str, bytes]]:
    for module in ("engine", "shim"):
        for folder in folders_of(minor, ROOT / "jvm-shim" / module):
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    yield file.relative_to(folder).as_posix(), file.read_bytes()


def _write_zip(path: Path, entries: dict[str, bytes]) -> Path:
    """Writes an archive whose bytes depend on its entries only."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return path


def _signed(file: Path, key: str) -> Path:
    signature = file.with_name(f"{file.name}.asc")
    command = ["gpg", "--batch", "--yes", "--local-user", key, "--armor", "--output", str(signature), "--detach-sign"]
    try:
        done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MavenRepositoryError("signatures need gpg, which is not on the PATH") from None
    if done.returncode:
        raise MavenRepositoryError(f"gpg cannot sign {file.name}: {done.stderr.strip()}")
    return signature


def _write_checksums(file: Path) -> None:
    data = file.read_bytes()
    for name in CHECKSUMS:
        file.with_name(f"{file.name}.{name}").write_text(hashlib.new(name, data).hexdigest())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    sys.exit(main())
