"""`spark-submit --packages`, from a Maven repository and an empty cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import spark_ckpt
from spark_ckpt import read_state
from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.spark_version import MINOR

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("it is about the jar of spark-ckpt")


def submit(folder: Path, *conf: str) -> subprocess.CompletedProcess[str]:
    """Runs the job with the artifact from a new repository."""
    subprocess.run(
        [sys.executable, REPOSITORY / "jvm-shim" / "maven_repository.py", folder / "maven"], check=True, timeout=60
    )
    settings = {
        "spark.jars.ivy": str(folder / "ivy"),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        PROVIDER_KEY: PROVIDER_CLASS,
    }
    options = [f"--conf={key}={value}" for key, value in settings.items()] + [f"--conf={each}" for each in conf]
    package = f"io.github.sparkckpt:spark-ckpt_{MINOR}_2.13:{spark_ckpt.__version__}"
    environment = {
        **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        "DEFAULT_ARTIFACT_REPOSITORY": f"file://{folder / 'maven'}/",  # in place of the public one
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    return subprocess.run(
        [str(program), "--master", "local[1]", "--packages", package, *options, HERE / "packages_job.py", folder],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_query_with_the_jar_of_the_repository(tmp_path: Path) -> None:
    done = submit(tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = read_state(tmp_path / "checkpoint").to_arrow().to_pylist()
    assert {row["key"]["value"]: row["value"]["count"] for row in rows} == {"a": 4, "b": 2}
    jars = [jar.name for jar in (tmp_path / "ivy" / "jars").iterdir()]
    assert jars == [f"io.github.sparkckpt_spark-ckpt_{MINOR}_2.13-{spark_ckpt.__version__}.jar"]


def test_one_line_says_that_the_python_package_is_missing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], check=True, timeout=120)
    python = tmp_path / "empty" / "bin" / "python"
    done = submit(tmp_path, f"{CKPT_PREFIX}python={python}")
    assert done.returncode == 1
    assert (
        f"the Python at '{python}' has no package spark_ckpt: install it there (pip install spark-ckpt)" in done.stderr
    )
