"""The Maven artifacts of each Spark minor."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import spark_ckpt
from spark_ckpt.jars import SUPPORTED_SPARK, jar_name

REPOSITORY = Path(__file__).parents[1]
POM = "{http://maven.apache.org/POM/4.0.0}"
NAMES = ("", "-sources", "-javadoc")


@pytest.fixture(scope="module")
def maven() -> ModuleType:
    spec = importlib.util.spec_from_file_location("maven_repository", REPOSITORY / "jvm-shim" / "maven_repository.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def root(maven: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("maven")
    maven.write_repository(target, url="https://example.org/a&b")
    return target


def folder_of(root: Path, minor: str) -> Path:
    return root / "io" / "github" / "sparkckpt" / f"spark-ckpt_{minor}_2.13" / spark_ckpt.__version__


@pytest.mark.parametrize("minor", SUPPORTED_SPARK)
def test_an_artifact_has_what_public_repositories_require(root: Path, minor: str) -> None:
    folder = folder_of(root, minor)
    name = f"spark-ckpt_{minor}_2.13-{spark_ckpt.__version__}"
    files = {f"{name}.pom", *(f"{name}{kind}.jar" for kind in NAMES)}
    sums = {f"{file}.{kind}" for file in files for kind in ("md5", "sha1", "sha256", "sha512")}
    assert {file.name for file in folder.iterdir()} == files | sums
    for file in files:
        data = (folder / file).read_bytes()
        assert (folder / f"{file}.sha1").read_text() == hashlib.sha1(data).hexdigest()
        assert (folder / f"{file}.sha512").read_text() == hashlib.sha512(data).hexdigest()
    project = ElementTree.parse(folder / f"{name}.pom").getroot()
    assert [project.findtext(f"{POM}{tag}") for tag in ("groupId", "artifactId", "version", "url")] == [
        "io.github.sparkckpt",
        f"spark-ckpt_{minor}_2.13",
        spark_ckpt.__version__,
        "https://example.org/a&b",
    ]
    assert project.find(f"{POM}dependencies") is None
    for tag in ("name", "description", "licenses", "developers", "scm"):
        assert project.find(f"{POM}{tag}") is not None


@pytest.mark.parametrize("minor", SUPPORTED_SPARK)
def test_the_jar_is_that_of_the_wheel(root: Path, minor: str) -> None:
    jar = folder_of(root, minor) / f"spark-ckpt_{minor}_2.13-{spark_ckpt.__version__}.jar"
    ours = REPOSITORY / "spark_ckpt" / "jars" / jar_name(minor, spark_ckpt.__version__)
    assert jar.read_bytes() == ours.read_bytes()


@pytest.mark.parametrize("minor", SUPPORTED_SPARK)
def test_the_sources_are_those_that_the_jar_is_compiled_from(root: Path, minor: str) -> None:
    """Each class of the jar has the source file that it names."""
    folder = folder_of(root, minor)
    name = f"spark-ckpt_{minor}_2.13-{spark_ckpt.__version__}"
    with zipfile.ZipFile(folder / f"{name}-sources.jar") as archive:
        names = archive.namelist()
        texts = {source: archive.read(source).decode() for source in names if source.endswith(".scala")}
    assert len(names) == len(set(names))
    defined = set(re.findall(r"\b(?:class|trait|object)\s+(\w+)", "\n".join(texts.values())))
    with zipfile.ZipFile(folder / f"{name}.jar") as archive:
        entries = [Path(entry) for entry in archive.namelist() if entry.endswith(".class") and "$" not in entry]
    assert {entry.stem for entry in entries} - {"package"} <= defined
    sources = set(texts)
    compat = "org/apache/spark/sql/ckpt/compat/"
    with_own_file = {source.removeprefix(compat) for source in sources if source.startswith(compat)}
    assert "StoreMethodsSince43.scala" in with_own_file
    assert ("CopiedTransformWithState.scala" in with_own_file) == (minor in ("4.2", "4.3"))


def test_without_an_address_the_pom_has_none(maven: ModuleType, tmp_path: Path) -> None:
    folder = maven.write_repository(tmp_path)[0]
    (pom,) = folder.glob("*.pom")
    project = ElementTree.parse(pom).getroot()
    assert project.find(f"{POM}url") is None
    assert project.find(f"{POM}scm") is None


def test_the_same_sources_make_the_same_bytes(maven: ModuleType, root: Path, tmp_path: Path) -> None:
    maven.write_repository(tmp_path, url="https://example.org/a&b")
    for file in root.rglob("*"):
        if file.is_file():
            assert (tmp_path / file.relative_to(root)).read_bytes() == file.read_bytes(), file.name


@pytest.mark.skipif(shutil.which("gpg") is None, reason="needs gpg")
def test_signatures_are_those_of_the_key(maven: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    key = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", "tests@example.org", "ed25519", "sign"]
    subprocess.run(key, check=True, capture_output=True, timeout=120)
    try:
        folder = maven.write_repository(tmp_path / "maven", key="tests@example.org")[0]
        (pom,) = folder.glob("*.pom")
        signature = folder / f"{pom.name}.asc"
        subprocess.run(["gpg", "--batch", "--verify", signature, pom], check=True, capture_output=True)
        assert len(list(folder.glob("*.asc"))) == 4
        assert (folder / f"{pom.name}.asc.sha256").is_file()
        with pytest.raises(maven.MavenRepositoryError, match="gpg cannot sign"):
            maven.write_repository(tmp_path / "other", key="nobody@example.org")
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True)


def test_a_folder_of_no_minor_is_refused(maven: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "src" / "main" / "scala-maybe").mkdir(parents=True)
    with pytest.raises(maven.MavenRepositoryError, match="no folder of sources"):
        maven.folders_of("4.2", tmp_path)


def test_a_missing_jar_is_named(maven: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "jar_name", lambda minor, version: "none.jar")
    with pytest.raises(maven.MavenRepositoryError, match=r"none\.jar is missing: run 'make jar'"):
        maven.write_repository(tmp_path)
