from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

import spark_ckpt
from spark_ckpt import jars
from spark_ckpt.config import (
    EXTENSIONS_CLASS,
    EXTENSIONS_KEY,
    FILE_MANAGER_CLASS,
    FILE_MANAGER_KEY,
    PROVIDER_CLASS,
    PROVIDER_KEY,
    SETTINGS,
)
from spark_ckpt.errors import JarNotFoundError, PySparkNotFoundError, SparkCkptError, UnsupportedSparkError
from tests.support.spark_version import MINOR

REPOSITORY = Path(__file__).parents[1]
ENGINE = "io/github/sparkckpt/engine/"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return load(REPOSITORY / "jvm-shim" / "hatch_build.py")


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("4.0.1", "4.0"),
        ("4.0.10", "4.0"),
        ("4.1.4", "4.1"),
        ("4.2.0", "4.2"),
        ("4.2.7", "4.2"),
        ("4.2", "4.2"),
        ("4.2.0.dev1", "4.2"),
        ("4.3.0", "4.3"),
    ],
)
def test_chooses_the_minor_version(version: str, minor: str) -> None:
    assert jars.supported_minor(version) == minor


@pytest.mark.parametrize("version", ["4.0.0", "3.5.8", "4.4.0", "4.20.0", "5.0.0", "14.2.0", "4.2.x", "nonsense", ""])
def test_refuses_other_versions_by_name(version: str) -> None:
    message = rf"Spark {re.escape(version)} is not supported.*4\.0\.x from 4\.0\.1.*pip install 'pyspark~=4\.3\.0'"
    with pytest.raises(UnsupportedSparkError, match=message) as caught:
        jars.jar_path(version)
    assert caught.value.supported == ("4.0.1", "4.1.0", "4.2.0", "4.3.0")
    assert isinstance(caught.value, SparkCkptError)


def test_refuses_the_installed_pyspark_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    with pytest.raises(UnsupportedSparkError, match=r"3\.5\.9"):
        spark_ckpt.jar_path()


def test_says_that_pyspark_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(PySparkNotFoundError, match="pip install"):
        spark_ckpt.jar_path()


def test_says_that_the_jar_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_ckpt, "__version__", "0.0.0")
    with pytest.raises(JarNotFoundError, match=r"spark-ckpt_4\.2_2\.13-0\.0\.0\.jar"):
        jars.jar_path("4.2.0")


def test_the_jar_holds_the_provider_and_nothing_foreign() -> None:
    with zipfile.ZipFile(spark_ckpt.jar_path()) as jar:
        names = [name for name in jar.namelist() if name.endswith(".class")]
    assert PROVIDER_CLASS.replace(".", "/") + ".class" in names
    foreign = {name for name in names if not name.startswith(("org/apache/spark/sql/ckpt/", ENGINE))}
    # In Spark's packages, the jar for 4.0 has the type aliases of Relocated.scala alone.
    aliases = {name for name in foreign if re.fullmatch(r"org/apache/spark/sql/execution/.*/package\$?\.class", name)}
    assert foreign == (aliases if MINOR == "4.0" else set())


def test_the_jar_holds_its_license() -> None:
    with zipfile.ZipFile(spark_ckpt.jar_path()) as jar:
        assert jar.read("META-INF/LICENSE") == (REPOSITORY / "LICENSE").read_bytes()


def test_each_jar_holds_the_same_engine() -> None:
    engines = []
    for minor in jars.SUPPORTED_SPARK:
        path = Path(spark_ckpt.jar_path()).with_name(jars.jar_name(minor, spark_ckpt.__version__))
        with zipfile.ZipFile(path) as jar:
            engines.append({name: jar.read(name) for name in jar.namelist() if name.startswith(ENGINE)})
    assert len(engines[0]) > 200
    assert [other.keys() ^ engines[0].keys() for other in engines] == [set()] * len(engines)
    assert all(other == engines[0] for other in engines)


def test_the_engine_is_compiled_against_the_oldest_spark() -> None:
    poms = [(REPOSITORY / "jvm-shim" / module / "pom.xml").read_text(encoding="utf-8") for module in ("engine", "shim")]
    engine = {name: re.findall(f"<{name}>(.*)</{name}>", poms[0]) for name in ("unsafe.version", "scala.version")}
    profile = re.search(r"<id>spark-4\.0</id>.*?</profile>", poms[1], re.DOTALL)
    assert profile
    assert engine["unsafe.version"] == [jars.SUPPORTED_SPARK["4.0"]]
    assert engine["scala.version"] == re.findall(r"<scala\.version>(.*)</scala\.version>", profile[0])


def test_maven_and_python_have_one_version() -> None:
    for pom in (REPOSITORY / "jvm-shim").glob("**/pom.xml"):
        if "target" not in pom.parts:
            assert f"<version>{spark_ckpt.__version__}</version>" in pom.read_text(encoding="utf-8"), pom


def test_maven_builds_against_the_releases_in_the_table() -> None:
    poms = [REPOSITORY / "jvm-shim" / "pom.xml", REPOSITORY / "jvm-shim" / "shim" / "pom.xml"]
    versions = [v for pom in poms for v in re.findall(r"<spark\.version>(.*)</spark\.version>", pom.read_text("utf-8"))]
    assert sorted(versions) == sorted(jars.SUPPORTED_SPARK.values())


def test_make_knows_an_environment_for_each_minor() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    default = re.search(r"^DEFAULT_SPARK := (.*)$", makefile, re.MULTILINE)
    others = re.search(r"^OTHER_SPARKS := (.*)$", makefile, re.MULTILINE)
    assert default and others
    assert {default.group(1), *others.group(1).split()} == set(jars.SUPPORTED_SPARK)
    releases = dict(re.findall(r"^PYSPARK_([\d.]+) := (.*)$", makefile, re.MULTILINE))
    assert {minor: jars.supported_minor(release) for minor, release in releases.items()} == {
        minor: minor for minor in others.group(1).split()
    }


def write_wheel(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for name in names:
            wheel.writestr(name, "")
    return path


def test_a_wheel_has_one_jar_per_minor(hook: ModuleType, tmp_path: Path) -> None:
    expected = {"a.jar", "b.jar"}
    hook.check_wheel(write_wheel(tmp_path / "good.whl", "p/jars/a.jar", "p/jars/b.jar", "p/x.py"), expected)
    for number, held in enumerate([(), ("p/a.jar",), ("p/a.jar", "p/b.jar", "p/old.jar"), ("p/a.jar", "q/a.jar")]):
        with pytest.raises(hook.JarBuildError, match="has to hold"):
            hook.check_wheel(write_wheel(tmp_path / f"bad{number}.whl", *held), expected)


def test_names_what_is_missing_without_maven(hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(hook.JarBuildError, match="no 'mvn' on the PATH"):
        hook.find_maven()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Java version: 11.0.2, vendor: X'", "Java 11, and the shim needs 17"),
        ("echo 'Java version: 1.8.0_402, vendor: X'", "Java 8, and the shim needs 17"),
        ("echo 'JAVA_HOME is not set' >&2; exit 1", "there is no Java"),
    ],
)
def test_names_what_is_missing_without_java(hook: ModuleType, tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(hook.JarBuildError, match=message):
        hook.check_java(fake_maven(tmp_path, script))


def test_a_failed_build_names_the_errors_of_the_compiler(hook: ModuleType) -> None:
    calls = [f"    at scala.tools.nsc.Global.compile{n} (Global.scala:{n})" for n in range(100)]
    said = ["[ERROR] A.scala:3: not found: value x", "", "[ERROR] scala compilation failed"]
    assert hook.reasons_in([said[0], *calls, said[1], *calls, said[2]]) == [said[0], said[2]]


def test_accepts_java_17_and_newer(hook: ModuleType, tmp_path: Path) -> None:
    for version in ("17", "17.0.15", "21.0.1"):
        hook.check_java(fake_maven(tmp_path, f"echo 'Java version: {version}, vendor: X'"))


def fake_maven(folder: Path, script: str) -> str:
    path = folder / "mvn"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_jar_is_current_until_a_source_is_newer(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inputs = [tmp_path / "pom.xml"]
    for module in ("engine", "shim"):
        inputs += [tmp_path / module / "pom.xml", tmp_path / module / "src" / "main" / "A.scala"]
    for source in inputs:
        source.parent.mkdir(parents=True, exist_ok=True)
        source.touch()
    monkeypatch.setattr(hook, "JVM", tmp_path)
    jar = tmp_path / "a.jar"
    assert not hook.is_current(jar)
    jar.touch()
    now = jar.stat().st_mtime
    os.utime(jar, (now + 10, now + 10))
    assert hook.is_current(jar)
    for source in inputs:
        os.utime(source, (now + 20, now + 20))
        assert not hook.is_current(jar), source
        os.utime(source, (now, now))


def test_a_build_of_new_sources_begins_without_the_classes_of_old_ones(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hook, "JVM", tmp_path)
    engine, jar = tmp_path / "engine", tmp_path / "engine" / "target" / hook.ENGINE_JAR
    classes = [tmp_path / "shim" / "target" / f"spark-{minor}" / "classes" / "A.class" for minor in ("4.1", "4.2")]
    inputs = [tmp_path / "pom.xml", engine / "pom.xml", engine / "src" / "main" / "A.scala"]
    for file in [*inputs, jar, *classes]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    now = jar.stat().st_mtime
    os.utime(jar, (now + 10, now + 10))
    hook.remove_stale("4.2")
    assert [file.exists() for file in [jar, *classes]] == [True, True, False]
    os.utime(inputs[-1], (now + 20, now + 20))
    hook.remove_stale("4.1")
    assert [file.exists() for file in [jar, *classes]] == [False, False, False]


def test_the_properties_file_knows_every_setting() -> None:
    lines = (REPOSITORY / "conf" / "spark-ckpt.properties").read_text(encoding="utf-8").splitlines()
    words = [line.lstrip("#").split() for line in lines]
    pairs = {pair[0]: pair[1] for pair in words if len(pair) == 2 and pair[0].startswith("spark.")}
    assert pairs.pop(PROVIDER_KEY) == PROVIDER_CLASS
    assert pairs.pop(EXTENSIONS_KEY) == EXTENSIONS_CLASS
    assert pairs.pop(FILE_MANAGER_KEY) == FILE_MANAGER_CLASS
    assert Path(pairs.pop("spark.jars")).name == jars.jar_name("4.2", spark_ckpt.__version__)
    assert set(pairs) == {setting.key for setting in SETTINGS}
    for setting in SETTINGS:
        if setting.default is not None:
            assert setting.value(pairs) == setting.default, setting.key


def test_the_page_of_settings_is_current() -> None:
    generator = load(REPOSITORY / "docs" / "generate_settings.py")
    assert generator.settings_page() == generator.PAGE.read_text(encoding="utf-8"), "run 'make docs'"


def test_the_page_of_json_is_current() -> None:
    generator = load(REPOSITORY / "docs" / "generate_json.py")
    assert generator.json_page() == generator.PAGE.read_text(encoding="utf-8"), "run 'make docs'"


def test_the_page_and_the_schema_of_messages_are_current() -> None:
    generator = load(REPOSITORY / "docs" / "generate_messages.py")
    assert generator.schema_text() == generator.SCHEMA.read_text(encoding="utf-8"), "run 'make docs'"
    assert generator.messages_page() == generator.PAGE.read_text(encoding="utf-8"), "run 'make docs'"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel built with the tools of this environment, so that no package registry is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(REPOSITORY)], check=True, timeout=600)
    (wheel,) = folder.glob("spark_ckpt-*.whl")
    return wheel


@pytest.mark.slow
def test_a_wheel_can_be_built_and_used_without_the_source(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    code = "import spark_ckpt; print(spark_ckpt.jar_path())"
    environment = {**os.environ, "PYTHONPATH": str(target)}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert Path(result.stdout.strip()).parent == target / "spark_ckpt" / "jars"
    assert (target / "spark_ckpt" / "py.typed").is_file()


@pytest.mark.slow
def test_a_wheel_installs_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """The wheel works with this environment's dependencies, but without its editable install of the source."""
    venv = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=600)
    python = venv / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=600)
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}  # ignores .pth files
    run = partial(subprocess.run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    version = run([venv / "bin" / "spark-ckpt", "--version"]).stdout
    jar = run([python, "-c", "import spark_ckpt; print(spark_ckpt.jar_path())"]).stdout
    assert version.split()[-1] == spark_ckpt.__version__
    assert Path(jar.strip()).is_relative_to(venv)
    assert Path(jar.strip()).is_file()
