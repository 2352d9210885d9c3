"""Compiles Java sources against the installed Spark and the shim."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from spark_ckpt.jars import jar_path
from tests.support.gateway import class_path


def compile_java_jar(sources: Path, folder: Path) -> Path:
    """Compiles the sources below a directory; returns a jar in `folder`, which is created."""
    classes = folder / "classes"
    classes.mkdir(parents=True)
    command = ["javac", "--release", "17", "-nowarn", "-cp", class_path([Path(jar_path())]), "-d", str(classes)]
    done = subprocess.run(
        [*command, *map(str, sorted(sources.rglob("*.java")))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout
    jar = folder / f"{sources.name}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, file.relative_to(classes))
    return jar
