from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import spark_ckpt.session
from spark_ckpt import configure
from spark_ckpt.config import (
    EXTENSIONS_CLASS,
    EXTENSIONS_KEY,
    FILE_MANAGER_CLASS,
    FILE_MANAGER_KEY,
    PREFIX,
    PROVIDER_CLASS,
    PROVIDER_KEY,
    SETTINGS,
)
from spark_ckpt.errors import SessionConfigError, SettingError
from tests.support.delta import needs_delta
from tests.support.spark_version import MINOR, needs_rows

REPOSITORY = Path(__file__).parents[1]
JAR = "/somewhere/spark-ckpt.jar"

Builder = SparkSession.Builder


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """New builder; `configure` detects no running driver in this process."""
    monkeypatch.setattr(spark_ckpt.session, "jar_path", lambda: Path(JAR))
    monkeypatch.setattr(spark_ckpt.session, "_running_driver", lambda jar: {})
    for name in ("SPARK_REMOTE", "SPARK_API_MODE", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    return SparkSession.Builder()


def options(builder: Builder) -> dict[str, str]:
    return dict(builder._options)


def test_adds_jar_provider_and_this_python(builder: Builder) -> None:
    assert configure(builder) is builder
    assert options(builder) == {
        "spark.jars": JAR,
        EXTENSIONS_KEY: EXTENSIONS_CLASS,
        PROVIDER_KEY: PROVIDER_CLASS,
        FILE_MANAGER_KEY: FILE_MANAGER_CLASS,
        PREFIX + "python": sys.executable,
    }


def test_every_setting_has_a_typed_option(builder: Builder) -> None:
    configure(
        builder,
        store="zookeeper",
        zookeeper_quorum="zk:2181",
        zookeeper_path="/streams",
        zookeeper_session_timeout=30.0,
        zookeeper_client_file=Path("/etc/spark/zookeeper.json"),
        cleanup="deleteOnCancellation",
        on_damage="rollBack",
        on_query_change="warn",
        timeout="1h",
        tolerable_failures=0,
        history=20,
        retained=7,
        retained_age="1h",
        inline_threshold=0,
        max_parallelism=4096,
        ack_threshold="64KiB",
        ack_memory="100000",
        memory_budget="4GiB",
        max_chain_deltas=3,
        max_chain_delta_ratio=0.5,
        restore="eager",
        compression="zstd",
        change_feed="writes",
        real_time_mode="experimental",
        bridge_timeout=90.5,
        bridge_silence="1m",
        log_level="warning",
        log_format="json",
        tracing="otel",
        python=Path("/opt/python"),
    )
    ours = {key: value for key, value in options(builder).items() if key.startswith(PREFIX)}
    assert set(ours) == {setting.key for setting in SETTINGS}
    assert ours[PREFIX + "chain.maxDeltaRatio"] == "0.5"
    assert ours[PREFIX + "bridge.timeout"] == "90.5"
    assert ours[PREFIX + "bridge.silence"] == "1m"
    assert ours[PREFIX + "timeout"] == "1h"
    assert ours[PREFIX + "ackThreshold"] == "64KiB"
    assert ours[PREFIX + "python"] == "/opt/python"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/mine.jar", f"/mine.jar,{JAR}"),
        (" /a.jar, /b.jar ", f"/a.jar,/b.jar,{JAR}"),
        (JAR, JAR),
        (f"{JAR},/a.jar", f"{JAR},/a.jar"),
        ("", JAR),
    ],
)
def test_merges_the_jars(builder: Builder, before: str, after: str) -> None:
    configure(builder.config("spark.jars", before))
    assert options(builder)["spark.jars"] == after


def test_keeps_the_extensions_that_are_there(builder: Builder) -> None:
    configure(builder.config(EXTENSIONS_KEY, "org.example.First, org.example.Second"))
    assert options(builder)[EXTENSIONS_KEY] == f"org.example.First,org.example.Second,{EXTENSIONS_CLASS}"


def test_keeps_what_the_user_set(builder: Builder) -> None:
    theirs = {
        PREFIX + "retained": "9",
        PREFIX + "python": "/their/python",
        PROVIDER_KEY: PROVIDER_CLASS,
        FILE_MANAGER_KEY: "org.example.FileManager",
    }
    configure(builder.config(map=dict(theirs)), retained=9)
    assert options(builder) == theirs | {"spark.jars": JAR, EXTENSIONS_KEY: EXTENSIONS_CLASS}


@pytest.mark.parametrize(
    ("suffix", "on_builder", "option"),
    [
        ("retained", "9", {"retained": 3}),
        ("timeout", "5m", {"timeout": 301}),
        ("python", "/their/python", {"python": "/other/python"}),
    ],
)
def test_an_option_must_not_differ_from_the_builder(
    builder: Builder, suffix: str, on_builder: str, option: dict[str, Any]
) -> None:
    builder.config(PREFIX + suffix, on_builder)
    with pytest.raises(SettingError, match=f"'{on_builder}' on the builder and '.*' in configure") as caught:
        configure(builder, **option)
    assert caught.value.key == PREFIX + suffix
    assert options(builder) == {PREFIX + suffix: on_builder}, "nothing may be set halfway"


def test_an_option_may_repeat_the_builder_in_other_words(builder: Builder) -> None:
    configure(builder.config(PREFIX + "timeout", "5m"), timeout=300.0)
    assert options(builder)[PREFIX + "timeout"] == "5m"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (PREFIX + "retaind", "5"),
        (PREFIX + "retained", "1"),
        (PREFIX.replace("stateStore", "statestore") + "store", "zookeeper"),
        (PREFIX.replace("ckpt", "chkpt") + "store", "zookeeper"),
        (PREFIX + "zookeeper.quorum", "zk:2181"),
    ],
)
def test_settings_on_the_builder_are_checked(builder: Builder, key: str, text: str) -> None:
    builder.config(key, text)
    with pytest.raises(SettingError) as caught:
        configure(builder)
    assert caught.value.key == key
    assert options(builder) == {key: text}, "nothing may be set halfway"


def test_settings_of_a_driver_that_runs_are_checked(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_ckpt.session, "_running_driver", lambda jar: {PREFIX + "store": "zookeeper"})
    with pytest.raises(SettingError, match="host:port"):
        configure(builder)
    configure(builder, zookeeper_quorum="zk:2181")
    monkeypatch.setattr(spark_ckpt.session, "_running_driver", lambda jar: {PREFIX + "retaind": "3"})
    with pytest.raises(SettingError, match="did you mean"):
        configure(builder)


@pytest.mark.parametrize("timeout", [0, 0.0, -1, float("nan"), float("inf"), 0.5, True, "0", "soon"])
def test_a_timeout_that_cannot_be_is_refused_at_once(builder: Builder, timeout: Any) -> None:
    with pytest.raises(SettingError, match=r"bridge\.timeout"):
        configure(builder, bridge_timeout=timeout)
    assert options(builder) == {}


def test_configuring_twice_changes_nothing(builder: Builder) -> None:
    once = options(configure(builder, retained=4))
    assert options(configure(builder)) == once


@needs_delta
def test_works_with_deltas_helper(builder: Builder) -> None:
    from delta import configure_spark_with_delta_pip

    configured = options(configure(configure_spark_with_delta_pip(builder)))
    other_way_round = options(configure_spark_with_delta_pip(configure(SparkSession.Builder())))
    assert configured == other_way_round
    assert configured["spark.jars"] == JAR
    assert configured["spark.jars.packages"].startswith("io.delta:delta-spark")


def test_refuses_another_provider(builder: Builder) -> None:
    builder.config(PROVIDER_KEY, "org.example.OtherProvider")
    with pytest.raises(SessionConfigError, match=r"org\.example\.OtherProvider"):
        configure(builder)


@pytest.mark.parametrize(
    "make",
    [
        lambda builder, environment: builder.remote("sc://host"),
        lambda builder, environment: builder.config("spark.api.mode", "connect"),
        lambda builder, environment: environment.setenv("SPARK_REMOTE", "sc://host") or builder,
        lambda builder, environment: environment.setenv("SPARK_API_MODE", "Connect") or builder,
    ],
    ids=["remote", "api mode", "SPARK_REMOTE", "SPARK_API_MODE"],
)
def test_refuses_spark_connect(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, make: Callable[[Builder, pytest.MonkeyPatch], Builder]
) -> None:
    with pytest.raises(SessionConfigError, match="Spark Connect"):
        configure(make(builder, monkeypatch))


def test_refuses_what_is_no_builder(builder: Builder) -> None:
    with pytest.raises(SessionConfigError, match=r"SparkSession\.Builder, .* not str"):
        configure("local[2]")  # type: ignore[arg-type]


def test_refuses_values_that_a_setting_cannot_have(builder: Builder) -> None:
    with pytest.raises(SettingError, match="maxParallelism"):
        configure(builder, max_parallelism=0)
    assert options(builder) == {}, "nothing may be set halfway"


@pytest.mark.parametrize(
    "arguments",
    [
        "--jars /a.jar,/b.jar pyspark-shell",
        "--jars=/a.jar,/b.jar pyspark-shell",
        f"--jars {JAR} --jars=/b.jar pyspark-shell",
        "--conf spark.jars=/a.jar pyspark-shell",
        "--conf=spark.jars=/a.jar pyspark-shell",
        "-c 'spark.jars=/a.jar, /b.jar' pyspark-shell",
        "--jars= pyspark-shell",
        "--jars '/a.jar pyspark-shell",
    ],
)
def test_refuses_jars_that_would_replace_ours(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    with pytest.raises(SessionConfigError, match="PYSPARK_SUBMIT_ARGS"):
        configure(builder)


@pytest.mark.parametrize(
    "arguments",
    [
        f"--jars /a.jar,{JAR} pyspark-shell",
        f"--jars=/a.jar --jars={JAR},/b.jar pyspark-shell",
        f"--conf spark.jars={JAR} pyspark-shell",
        "--packages org.example:jars:1.0 --conf spark.jars.packages=org.example:a:1 pyspark-shell --jars",
    ],
)
def test_takes_other_arguments(builder: Builder, monkeypatch: pytest.MonkeyPatch, arguments: str) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    configure(builder)


def test_importing_the_package_imports_no_pyspark() -> None:
    code = "import sys, spark_ckpt; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True)


def test_no_other_public_names() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        spark_ckpt.no_such_name  # noqa: B018


COUNT = """
folder = sys.argv[1]
spark.sparkContext.setLogLevel("ERROR")
spark.range(100).selectExpr("id % 10 AS k").write.parquet(folder + "/in")
counts = spark.readStream.schema("k BIGINT").parquet(folder + "/in").groupBy("k").count()
writer = counts.writeStream.outputMode("complete").format("memory").queryName("counts")
writer.option("checkpointLocation", folder + "/ckpt").trigger(availableNow=True).start().awaitTermination()
assert spark.table("counts").count() == 10
"""
SESSION = "SparkSession.builder.master('local[1]').config('spark.sql.shuffle.partitions', 2)"
IMPORTS = "import sys\nfrom pyspark.sql import SparkSession\nimport spark_ckpt\n"


def environment() -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    python_path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return clean | {"PYTHONPATH": python_path, "PYSPARK_PYTHON": sys.executable}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=1500)
    assert result.returncode == 0, result.stderr[-4000:]
    return result


def completed(folder: Path) -> list[Path]:
    return list(folder.glob("ckpt/ckpt/completed/*.json"))


def spark_submit() -> str:
    from pyspark.find_spark_home import _find_spark_home

    return str(Path(_find_spark_home(), "bin", "spark-submit"))


@pytest.mark.spark
@pytest.mark.long
def test_spark_submit_with_configure_alone(tmp_path: Path) -> None:
    """Under `spark-submit` the driver JVM starts before the program: the jar must reach its class loader, too."""
    program = tmp_path / "job.py"
    program.write_text(f"{IMPORTS}spark = spark_ckpt.configure({SESSION}).getOrCreate()\n{COUNT}")
    run([spark_submit(), str(program), str(tmp_path)], tmp_path)
    assert completed(tmp_path)


@pytest.mark.spark
def test_spark_submit_with_the_properties_file_alone(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(f"{IMPORTS}spark = {SESSION}.getOrCreate()\n{COUNT}")
    properties = REPOSITORY / "conf" / "spark-ckpt.properties"
    jar = str(spark_ckpt.jar_path())
    run([spark_submit(), "--properties-file", str(properties), "--jars", jar, str(program), str(tmp_path)], tmp_path)
    assert completed(tmp_path)


@pytest.mark.spark
def test_refuses_a_running_session_without_the_jar(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        f"{IMPORTS}from spark_ckpt.errors import SessionConfigError\n"
        f"{SESSION}.getOrCreate()\n"
        "try:\n    spark_ckpt.configure(SparkSession.builder)\n"
        "except SessionConfigError as error:\n    print(error)\n"
    )
    assert "before the first getOrCreate()" in run([sys.executable, str(program)], tmp_path).stdout


TRANSFORM = """
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

class Nothing(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "n long")
    def handleInputRows(self, key, rows, timers):
        return iter(())
    def close(self):
        pass

folder = sys.argv[1]
spark.sparkContext.setLogLevel("ERROR")
rates = spark.readStream.format("rate").load()
frame = rates.groupBy("value").transformWithState(Nothing(), "n long", "update", "none")
query = frame.writeStream.outputMode("update").format("noop").option("checkpointLocation", folder + "/ckpt").start()
try:
    query.awaitTermination()
except StreamingQueryException as error:
    print(error)
"""


@needs_rows
@pytest.mark.spark
def test_transform_with_state_without_the_extension_names_the_setting(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    settings = f"config('{PROVIDER_KEY}', '{PROVIDER_CLASS}').config('spark.jars', '{spark_ckpt.jar_path()}')"
    program.write_text(f"{IMPORTS}spark = {SESSION}.{settings}.getOrCreate()\n{TRANSFORM}")
    output = run([sys.executable, str(program), str(tmp_path)], tmp_path).stdout
    assert f"{EXTENSIONS_KEY}={EXTENSIONS_CLASS}" in output
    assert not completed(tmp_path)


EXISTING = """
folder = sys.argv[1]
spark.range(100).selectExpr("id % 10 AS k").write.parquet(folder + "/in")

def count():
    counts = spark.readStream.schema("k BIGINT").parquet(folder + "/in").groupBy("k").count()
    writer = counts.writeStream.outputMode("complete").format("noop")
    writer.option("checkpointLocation", folder + "/ckpt").trigger(availableNow=True).start().awaitTermination()

theirs = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ours = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
spark.conf.set("spark.sql.streaming.stateStore.providerClass", theirs)
count()
spark.conf.set("spark.sql.streaming.stateStore.providerClass", ours)
print("now ours", file=sys.stderr, flush=True)
spark.range(7).selectExpr("id AS k").write.mode("append").parquet(folder + "/in")
count()
"""


@pytest.mark.spark
@pytest.mark.long
def test_a_location_of_another_provider_is_warned_of(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(f"{IMPORTS}spark = spark_ckpt.configure({SESSION}).getOrCreate()\n{EXISTING}")
    before, after = run([sys.executable, str(program), str(tmp_path)], tmp_path).stderr.split("now ours\n")
    assert "runs WITHOUT spark-ckpt" not in before
    (warning,) = (line for line in after.splitlines() if "runs WITHOUT spark-ckpt" in line)
    for words in (" WARN ", f"{tmp_path}/ckpt", "HDFSBackedStateStoreProvider", "spark-ckpt import"):
        assert words in warning
    assert not completed(tmp_path)


@pytest.mark.spark
@pytest.mark.long
def test_the_side_process_runs_with_the_drivers_python(tmp_path: Path) -> None:
    """Without a setting, PYSPARK_DRIVER_PYTHON takes precedence over PYSPARK_PYTHON, as in PySpark."""
    python = tmp_path / "driver-python"
    python.write_text(f'#!/bin/sh\ntouch "{tmp_path}/used"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    program = tmp_path / "job.py"
    program.write_text(
        f"{IMPORTS}import os\nos.environ['PYSPARK_DRIVER_PYTHON'] = {str(python)!r}\n"
        f"settings = {{'{PROVIDER_KEY}': '{PROVIDER_CLASS}', 'spark.jars': '{spark_ckpt.jar_path()}'}}\n"
        f"spark = {SESSION}.config(map=settings).getOrCreate()\n{COUNT}"
    )
    run([sys.executable, str(program), str(tmp_path)], tmp_path)
    assert completed(tmp_path)
    assert (tmp_path / "used").exists()


WITHOUT_JAR = """
folder = sys.argv[1]
spark.sparkContext.setLogLevel("OFF")
rows = spark.readStream.format("rate").load().groupBy("value").count()
writer = rows.writeStream.outputMode("complete").format("noop").option("checkpointLocation", folder + "/ckpt")

def shown(error):
    return str(error).replace("\\n", " ")

try:
    writer.start().awaitTermination()
except Exception as error:
    print(shown(error))
spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", "org.apache.spark.sql.ckpt.CheckpointLogFileManager")
try:
    writer.start()
except Exception as error:
    print(type(error).__name__, shown(error))
"""


@pytest.mark.spark
def test_without_the_jar_pyspark_shows_what_the_page_says(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        f"{IMPORTS}spark = {SESSION}.config('{PROVIDER_KEY}', '{PROVIDER_CLASS}')"
        f".config('spark.ui.enabled', False).getOrCreate()\n{WITHOUT_JAR}"
    )
    first, second = run([sys.executable, str(program), str(tmp_path)], tmp_path).stdout.splitlines()
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    no_file_manager = (
        f"ClassNotFoundException: {FILE_MANAGER_CLASS}" if MINOR == "4.0" else "CANNOT_LOAD_CHECKPOINT_FILE_MANAGER"
    )
    for words, output in (
        (f"terminated with exception: {PROVIDER_CLASS}", first),
        (no_file_manager, second),
    ):
        assert words in output
        assert words in page
