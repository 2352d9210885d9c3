"""Compiles Scala sources with the compiler in PySpark's jars, which is that of its Spark."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from tests.support.gateway import class_path


def compile_classes(source: Path, classes: Path) -> None:
    """Compiles a source file against the installed Spark into an existing directory."""
    command = ["java", "-Xss4m", "-cp", class_path([]), "scala.tools.nsc.Main", "-usejavacp", "-release", "17"]
    done = subprocess.run(
        [*command, "-d", str(classes), str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout


def compile_jar(source: Path, folder: Path) -> Path:
    """Compiles a source file against the installed Spark; returns a jar in `folder`."""
    classes = folder / "classes"
    classes.mkdir(parents=True)
    compile_classes(source, classes)
    jar = folder / f"{source.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, file.relative_to(classes))
    return jar
