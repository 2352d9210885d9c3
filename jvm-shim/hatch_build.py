"""Build hook: compiles the engine and the shim with Maven and puts their jars into the wheel, in `spark_ckpt.jars`.

Hatchling calls it for wheels and editable installs. Run as a program, it only refreshes the jars in the source tree:

    python jvm-shim/hatch_build.py
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "jvm-shim")]  # the package is not installed while it is being built

from pyspark_jars import PySparkJarsError, make_repository  # noqa: E402

from spark_ckpt import __version__  # noqa: E402
from spark_ckpt.jars import SUPPORTED_SPARK, jar_name  # noqa: E402

JVM = ROOT / "jvm-shim"
JARS = ROOT / "spark_ckpt" / "jars"
JAR_NAMES = {minor: jar_name(minor, __version__) for minor in SUPPORTED_SPARK}
ENGINE_JAR = "spark-ckpt-engine.jar"
REQUIRED_JAVA = 17

WITHOUT_ARTIFACTS = {"4.3"}
"""Minor versions that Maven Central lacks. Their shim is compiled against the jars in PySpark."""


class JarBuildError(RuntimeError):
    """The jar cannot be built here. The message says what is missing and how to get it."""


class JarBuildHook(BuildHookInterface[Any]):
    """Adds one jar per supported Spark minor version to the wheel, and checks the finished wheel for them."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing or out of date before hatchling collects the files."""
        if self.target_name != "wheel":
            return
        for jar in build_jars():
            build_data["artifacts"].append(f"/{jar.relative_to(ROOT).as_posix()}")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Fail the build unless the wheel holds exactly the jars that it has to hold."""
        if self.target_name == "wheel" and version != "editable":
            check_wheel(Path(artifact_path), set(JAR_NAMES.values()))


def build_jars() -> list[Path]:
    """Put an up-to-date jar for each supported Spark minor version into the package; return their paths."""
    for stale in JARS.glob("*.jar"):
        if stale.name not in JAR_NAMES.values():
            stale.unlink()
    jars = []
    for minor, name in JAR_NAMES.items():
        jar = JARS / name
        built = target_of(minor) / name
        if not is_current(jar):
            if not is_current(built):
                print(f"building {name} with Maven", file=sys.stderr, flush=True)
                compile_shim(minor)
            publish(built, jar)
        jars.append(jar)
    return jars


def target_of(minor: str) -> Path:
    """Folder of what Maven makes of the shim for one Spark minor version."""
    return JVM / "shim" / "target" / f"spark-{minor}"


def is_current(jar: Path, modules: Iterable[str] = ("engine", "shim")) -> bool:
    """Whether the jar exists and is younger than everything that it is made of."""
    if not jar.is_file():
        return False
    inputs = [JVM / "pom.xml"]
    for module in modules:
        inputs += [JVM / module / "pom.xml", *(JVM / module / "src" / "main").rglob("*.*")]
    return all(source.stat().st_mtime <= jar.stat().st_mtime for source in inputs)


def compile_shim(minor: str) -> None:
    """Run Maven on the shim for one Spark minor version. The engine is compiled with the first one."""
    maven = find_maven()
    check_java(maven)
    remove_stale(minor)
    if minor in WITHOUT_ARTIFACTS:
        make_repository(SUPPORTED_SPARK[minor])
    command = [
        maven,
        "-q",
        "-B",
        "-Dmaven.test.skip=true",
        "-DskipTests",
        "-pl",
        "shim",
        "-am",
        f"-Dspark.minor={minor}",
        "package",
    ]
    result = subprocess.run(command, cwd=JVM, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        reasons = "\n".join(reasons_in(result.stdout.splitlines()))
        raise JarBuildError(f"Maven could not build the shim for Spark {minor} ({' '.join(command)}):\n{reasons}")


def reasons_in(lines: list[str], limit: int = 30) -> list[str]:
    """What Maven and the compiler say, without the calls of their plugins, which would fill the end of the output."""
    said = [line for line in lines if line.strip() and not line.lstrip().startswith("at ")]
    return said[:limit]


def remove_stale(minor: str) -> None:
    """Remove what Maven made of older sources: it neither removes the classes of sources that are gone nor compiles the
    shim again after a change of the engine alone.
    """
    shutil.rmtree(target_of(minor), ignore_errors=True)
    if not is_current(JVM / "engine" / "target" / ENGINE_JAR, ["engine"]):
        shutil.rmtree(JVM / "engine" / "target", ignore_errors=True)


def publish(built: Path, jar: Path) -> None:
    """Copy the jar that Maven left, visible whole or not at all: other builds may be reading the old one."""
    if not built.is_file():
        raise JarBuildError(f"Maven ended well but left no {built}: its name and the version of the package disagree")
    partial = jar.with_suffix(f".{os.getpid()}.tmp")
    shutil.copyfile(built, partial)
    partial.replace(jar)


def find_maven() -> str:
    """Path of the `mvn` command."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JarBuildError(
            "building spark-ckpt from source compiles its jar and needs Maven 3.8 or newer, but there is no 'mvn' on "
            "the PATH: install Maven (and a JDK 17), or install a wheel of spark-ckpt, which has the jar inside"
        )
    return maven


def check_java(maven: str, environment: Mapping[str, str] | None = None) -> None:
    """Fail unless Maven will run on Java 17 or newer."""
    remedy = (
        "install a JDK 17 and, if there are several, let JAVA_HOME name it; or install a wheel of spark-ckpt, "
        "which has the jar inside"
    )
    result = subprocess.run([maven, "-v"], capture_output=True, text=True, env=environment)
    output = result.stdout + result.stderr
    found = re.search(r"Java version: (?:1\.)?(\d+)", output)
    if result.returncode != 0 or found is None:
        raise JarBuildError(f"'mvn -v' fails, most often because there is no Java: {remedy}\n{output.strip()}")
    if int(found.group(1)) < REQUIRED_JAVA:
        raise JarBuildError(f"Maven runs on Java {found.group(1)}, and the shim needs {REQUIRED_JAVA}: {remedy}")


def check_wheel(wheel: Path, expected: set[str]) -> None:
    """Fail unless the wheel holds the expected jars and no other."""
    with zipfile.ZipFile(wheel) as archive:
        held = [Path(name).name for name in archive.namelist() if name.endswith(".jar")]
    if sorted(held) != sorted(expected):
        raise JarBuildError(f"{wheel.name} has to hold {sorted(expected)} and holds {sorted(held)}")


def main() -> int:
    """Refresh the jars of the source tree."""
    try:
        for jar in build_jars():
            print(jar.relative_to(ROOT))
    except (JarBuildError, PySparkJarsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
