from __future__ import annotations

import re

import pytest

from spark_ckpt.config import PREFIX, SETTINGS, CheckpointConfig
from spark_ckpt.config.settings import MIN_SILENCE_SECONDS
from spark_ckpt.config.value_parsers import Setting
from spark_ckpt.errors import SettingError
from tests.support.provider import REPOSITORY

SHIM_SETTINGS = REPOSITORY / "jvm-shim/shim/src/main/scala/org/apache/spark/sql/ckpt/common/Settings.scala"


def parse(**settings: str) -> CheckpointConfig:
    return CheckpointConfig.parse({PREFIX + key.replace("__", "."): value for key, value in settings.items()})


def test_without_settings_all_have_their_defaults() -> None:
    assert CheckpointConfig.parse({}) == CheckpointConfig()


def test_the_table_has_the_defaults_of_the_class() -> None:
    values = [setting.value({}) for setting in SETTINGS]
    config = CheckpointConfig()
    assert values == [
        config.max_parallelism,
        config.retained,
        config.retained_age,
        config.inline_threshold,
        config.store,
        config.zookeeper_quorum,
        config.zookeeper_path,
        config.zookeeper_session_timeout,
        config.zookeeper_client_file,
        config.cleanup,
        config.on_damage,
        config.on_query_change,
        config.timeout,
        config.tolerable_failures,
        config.history,
        config.ack_threshold,
        config.ack_memory,
        config.memory_budget,
        config.max_deltas,
        config.max_delta_ratio,
        config.restore,
        config.compression,
        config.change_feed,
        config.real_time_mode,
        config.python,
        config.bridge_timeout,
        config.bridge_silence,
        config.log_level,
        config.log_format,
        config.tracing,
    ]


def test_the_shim_has_the_same_defaults() -> None:
    """Executors and the driver read these settings themselves."""
    source = SHIM_SETTINGS.read_text(encoding="utf-8")
    threshold = re.search(r"DefaultAckThreshold = 1L << ([0-9]+)\n", source)
    timeout = re.search(r"DefaultBridgeTimeout: FiniteDuration = ([0-9]+)\.seconds\n", source)
    silence = re.search(r"DefaultBridgeSilence: FiniteDuration = ([0-9]+)\.seconds\n", source)
    least = re.search(r"MinSilence: FiniteDuration = ([0-9]+)\.second\n", source)
    assert silence is not None
    assert least is not None
    assert int(silence[1]) == CheckpointConfig().bridge_silence
    assert int(least[1]) == MIN_SILENCE_SECONDS
    assert threshold is not None
    assert timeout is not None
    assert 1 << int(threshold[1]) == CheckpointConfig().ack_threshold
    assert int(timeout[1]) == CheckpointConfig().bridge_timeout


def test_every_setting_is_documented() -> None:
    for setting in SETTINGS:
        assert setting.doc.endswith(".")
        assert setting.kind
        assert setting.key.startswith("spark.sql.streaming.stateStore.ckpt.")


def test_values_are_typed() -> None:
    config = parse(
        maxParallelism="1600",
        retained=" 5 ",
        inlineThreshold="0",
        store="ZooKeeper",
        zookeeper__quorum="zk-1:2181,zk-2:2181",
        zookeeper__path="/streams",
        zookeeper__sessionTimeout="30",
        zookeeper__clientFile="/etc/spark/zookeeper.json",
        cleanup="deleteoncancellation",
        onDamage="rollback",
        onQueryChange="WARN",
        timeout="1h",
        tolerableFailures="0",
        history="25",
        ackThreshold="2MiB",
        ackMemory="1000000",
        memory__budget="4GiB",
        chain__maxDeltas="8",
        chain__maxDeltaRatio="0.5",
        restore="Eager",
        compression="LZ4",
        changeFeed="Writes",
        realTimeMode="Experimental",
        python="/usr/bin/python3",
        bridge__timeout="112.5",
        bridge__silence="60s",
        log__level="debug",
        log__format="JSON",
        tracing="OTel",
    )
    assert config == CheckpointConfig(
        max_parallelism=1600,
        retained=5,
        inline_threshold=0,
        store="zookeeper",
        zookeeper_quorum="zk-1:2181,zk-2:2181",
        zookeeper_path="/streams",
        zookeeper_session_timeout=30.0,
        zookeeper_client_file="/etc/spark/zookeeper.json",
        cleanup="deleteOnCancellation",
        on_damage="rollBack",
        on_query_change="warn",
        timeout=3600.0,
        tolerable_failures=0,
        history=25,
        ack_threshold=2 << 20,
        ack_memory=1_000_000,
        memory_budget=str(4 << 30),
        max_deltas=8,
        max_delta_ratio=0.5,
        restore="eager",
        compression="lz4",
        change_feed="writes",
        real_time_mode="experimental",
        python="/usr/bin/python3",
        bridge_timeout=112.5,
        bridge_silence=60.0,
        log_level="debug",
        log_format="json",
        tracing="otel",
    )


GOOD: dict[str, dict[str, object]] = {
    "maxParallelism": {"1": 1, "1600": 1600, "2k": 2000, "32768": 32768},
    "retained": {"2": 2, "10": 10, "1k": 1000},
    "inlineThreshold": {"0": 0, "20k": 20480, "1048576": 1 << 20, "1MiB": 1 << 20},
    "store": {"filesystem": "filesystem", "Standalone": "standalone"},
    "zookeeper.quorum": {"zk": "zk", "zk-1:1,10.0.0.2:65535, [::1]:2181": "zk-1:1,10.0.0.2:65535, [::1]:2181"},
    "zookeeper.path": {"/a": "/a", "/a/b": "/a/b"},
    "zookeeper.clientFile": {"/a.json": "/a.json"},
    "zookeeper.sessionTimeout": {"1ms": 0.001, "30": 30.0, "299.999s": 299.999},
    "cleanup": {"RETAIN": "retain", "deleteOnEnd": "deleteOnEnd"},
    "onDamage": {"fail": "fail", "rollback": "rollBack"},
    "onQueryChange": {"fail": "fail", "Warn": "warn"},
    "retainedAge": {"1h": 3600.0, "7d": 7 * 86_400.0},
    "timeout": {"1ms": 0.001, "250ms": 0.25, "5m": 300.0, "365d": 365 * 86_400.0},
    "tolerableFailures": {"0": 0, "20": 20},
    "history": {"1": 1, "1000": 1000, "1k": 1000},
    "ackThreshold": {"0": 0, "64m": 64 << 20, "256MiB": 256 << 20, "268435456": 256 << 20},
    "ackMemory": {"0": 0, "64m": 64 << 20, "1GiB": 1 << 30},
    "memory.budget": {
        "1": "1",
        "512m": str(512 << 20),
        "1125899906842624": str(1 << 50),
        "1%": "1%",
        "090%": "90%",
        "None": "none",
    },
    "chain.maxDeltas": {"1": 1, "1000": 1000},
    "chain.maxDeltaRatio": {"0.001": 0.001, "1": 1.0, "2.5": 2.5},
    "restore": {"lazy": "lazy", "EAGER": "eager"},
    "compression": {"none": "none", "Lz4": "lz4", "zstd": "zstd"},
    "changeFeed": {"outcome": "outcome", "WRITES": "writes"},
    "realTimeMode": {"refused": "refused", "Experimental": "experimental"},
    "python": {"python3": "python3", "/opt/my python": "/opt/my python"},
    "bridge.timeout": {"300.0": 300.0, "300": 300.0, "5m": 300.0, "1501ms": 1.501, "365d": 365 * 86_400.0},
    "bridge.silence": {"1": 1.0, "120s": 120.0, "1001ms": 1.001, "4m": 240.0},
    "log.level": {"info": "info", "DEBUG": "debug"},
    "log.format": {"text": "text", "Json": "json"},
    "tracing": {"off": "off", "OTel": "otel"},
}
"""Valid texts of each setting with their values, including the limits of its range."""

NO_COUNTS = ("", "-1", "1.5", "many", "0x10", "1e3", "+2", "1_000")
NO_SIZES = ("", "-1", "1.5m", "1t", "many")
NO_DURATIONS = ("", "0", "0s", "0.0001", "-3", "never", "1e3", "5 m", "366d", "inf", "nan")
BAD: dict[str, tuple[str, ...]] = {
    "maxParallelism": ("0", "32769", "33k", *NO_COUNTS),
    "retained": ("0", "1", "20kb", *NO_COUNTS),
    "inlineThreshold": ("1048577", "1025k", "2MiB", *NO_SIZES),
    "store": ("", "postgres", "file system"),
    "zookeeper.quorum": ("", "zk:0", "zk:65536", "zk:port", "zk:1,", "http://zk:2181", "zk 2181"),
    "zookeeper.path": ("", "/", "streams", "/a//b", "/a/"),
    "zookeeper.clientFile": ("", "/", "a.json", "/a/"),
    "zookeeper.sessionTimeout": NO_DURATIONS,
    "cleanup": ("", "delete"),
    "onDamage": ("", "roll back"),
    "onQueryChange": ("", "ignore"),
    "retainedAge": NO_DURATIONS,
    "timeout": NO_DURATIONS,
    "tolerableFailures": ("21", *NO_COUNTS),
    "history": ("0", "1001", "2k", *NO_COUNTS),
    "ackThreshold": ("268435457", "257m", "1g", *NO_SIZES),
    "ackMemory": ("2000000000000", "2000g", *NO_SIZES),
    "memory.budget": ("0", "1125899906842625", "0%", "91%", "-1%", "1.5%", "%", "40 %", *NO_SIZES),
    "chain.maxDeltas": ("0", "1001", *NO_COUNTS),
    "chain.maxDeltaRatio": ("", "0", "-1", "nan", "inf", "half", "1.2.3", "1e3"),
    "restore": ("", "false", "later"),
    "compression": ("", "gzip", "lz4_raw"),
    "changeFeed": ("", "all"),
    "realTimeMode": ("", "true", "allowed"),
    "python": ("",),
    "bridge.timeout": NO_DURATIONS,
    "bridge.silence": ("999ms", *NO_DURATIONS),
    "log.level": ("", "warn", "trace"),
    "log.format": ("", "xml"),
    "tracing": ("", "true", "jaeger"),
}
"""Invalid texts of each setting, including the nearest values outside its range."""

COMPANIONS = {"zookeeper.": {"store": "zookeeper", "zookeeper.quorum": "zk:2181"}}
"""Additional settings required by settings with a given prefix."""


def beside(suffix: str, text: str) -> dict[str, str]:
    needed = {
        key: value for start, more in COMPANIONS.items() if suffix.startswith(start) for key, value in more.items()
    }
    return {PREFIX + key: value for key, value in (needed | {suffix: text}).items()}


def test_the_tables_of_values_have_every_setting() -> None:
    assert set(GOOD) == set(BAD) == {setting.suffix for setting in SETTINGS}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.suffix)
def test_every_setting_takes_good_values_and_refuses_bad_ones(setting: Setting[object]) -> None:
    for text, value in GOOD[setting.suffix].items():
        settings = beside(setting.suffix, text)
        CheckpointConfig.parse(settings)
        assert setting.value(settings) == value
    for text in BAD[setting.suffix]:
        with pytest.raises(SettingError) as caught:
            CheckpointConfig.parse(beside(setting.suffix, text))
        assert caught.value.key == setting.key, text
        assert setting.key in str(caught.value)


def test_the_store_zookeeper_needs_its_servers() -> None:
    with pytest.raises(SettingError, match="host:port") as caught:
        parse(store="zookeeper")
    assert caught.value.key == PREFIX + "zookeeper.quorum"


@pytest.mark.parametrize(
    ("settings", "key", "other"),
    [
        ({"zookeeper.quorum": "zk:2181"}, "zookeeper.quorum", "store is filesystem"),
        ({"zookeeper.path": "/a", "store": "standalone"}, "zookeeper.path", "store is standalone"),
        ({"zookeeper.sessionTimeout": "60"}, "zookeeper.sessionTimeout", "store=zookeeper"),
        (
            {"store": "zookeeper", "zookeeper.quorum": "zk", "zookeeper.sessionTimeout": "5m"},
            "zookeeper.sessionTimeout",
            "bridge.timeout",
        ),
        ({"bridge.timeout": "1.5"}, "bridge.timeout", "tolerableFailures=2"),
        ({"bridge.silence": "5m"}, "bridge.silence", "bridge.timeout"),
        ({"bridge.silence": "60", "bridge.timeout": "60"}, "bridge.silence", "bridge.timeout"),
        ({"bridge.timeout": "165.5", "tolerableFailures": "20"}, "bridge.timeout", "tolerableFailures=20"),
        ({"retained": "5", "cleanup": "deleteOnEnd"}, "retained", "cleanup=deleteOnEnd"),
    ],
)
def test_settings_that_contradict_each_other_are_both_named(settings: dict[str, str], key: str, other: str) -> None:
    with pytest.raises(SettingError, match=other) as caught:
        CheckpointConfig.parse({PREFIX + suffix: text for suffix, text in settings.items()})
    assert caught.value.key == PREFIX + key


def test_settings_that_come_near_a_contradiction_are_taken() -> None:
    assert parse(retained="5", cleanup="deleteOnCancellation").retained == 5
    assert parse(bridge__timeout="1ms", tolerableFailures="0").bridge_timeout == 0.001
    assert parse(bridge__timeout="100").bridge_silence == 120.0
    assert parse(bridge__timeout="60.001", bridge__silence="60").bridge_silence == 60.0
    assert parse(bridge__timeout="166", tolerableFailures="20").tolerable_failures == 20


OTHERS = (
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.compression.codec",
    "spark.sql.streaming.stateStore.checkpointFormatVersion",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
    "spark.sql.streaming.stateStore.commitValidation.enabled",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled",
    "spark.sql.streaming.checkpointLocation",
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.checkpoint.compress",
    "spark.cleaner.referenceTracking.cleanCheckpoints",
    "spark.pyspark.python",
    "spark.ckpt.level",
    "org.example.ckpt.retained",
    "retained",
    "",
)


def test_settings_of_others_are_left_alone() -> None:
    assert CheckpointConfig.parse(dict.fromkeys(OTHERS, "x")) == CheckpointConfig()


@pytest.mark.parametrize("key", OTHERS)
def test_where_only_settings_of_ours_belong_others_are_refused(key: str) -> None:
    with pytest.raises(SettingError, match="unknown setting") as caught:
        CheckpointConfig.parse_strictly({PREFIX + "retained": "5", key: "x"})
    assert caught.value.key == key
    assert CheckpointConfig.parse_strictly({PREFIX + "retained": "5"}).retained == 5


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.streaming.statestor.ckpt.retained",
        "spark.sql.streaming.statestore.ckpt.retained",
        "spark.sql.streaming.stateStore.chkpt.retained",
        "spark.sql.streaming.stateStore.Ckpt.retained",
        "spark.sql.streaming.stateStore.checkpoint.retained",
        "spark.sql.streaming.stateStore.spark-ckpt.retained",
        "spark.sql.streaming.stateStore.ckp.retaind",
        "spark.sql.streaming.state_store.ckpt.retained",
        "spark.sql.streamin.stateStore.ckpt.retained",
        "Spark.Sql.Streaming.StateStore.Ckpt.Retained",
        "SPARK.SQL.STREAMING.STATESTORE.CKPT.RETAINED",
        "spark.sql.stateStore.ckpt.retained",
        "spark.sql.streaming.ckpt.retained",
        "spark.sql.streaming.stateStore.retained",
        "spark.ckpt.retained",
        "sql.streaming.stateStore.ckpt.retained",
    ],
)
def test_a_misspelt_prefix_names_the_right_key(key: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean {PREFIX}retained\\?") as caught:
        CheckpointConfig.parse({key: "5"})
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("maxParallelism", "0", "'0' is out of range: must be a whole number such as 5 or 20k, from 1 to 32768"),
        ("retained", "many", "'many' is not a whole number such as 5 or 20k, of 2 or more"),
        ("retained", "1", "'1' is out of range"),
        ("inlineThreshold", "1048577", "from 0 to 1048576 bytes"),
        ("store", "postgres", "'postgres' is not one of: filesystem, standalone, zookeeper"),
        ("zookeeper.quorum", "", "the value is empty"),
        ("zookeeper.path", "streams", "'streams' is not an absolute path such as"),
        ("bridge.timeout", "0", "from 1ms to 365d"),
        ("bridge.timeout", "-3", "'-3' is not a duration such as 300, 300s, 250ms"),
        ("chain.maxDeltaRatio", "0", "not a number above 0"),
        ("python", "", "the value is empty"),
    ],
)
def test_a_value_that_cannot_be_names_the_key_and_what_is_allowed(key: str, text: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason) as caught:
        CheckpointConfig.parse({PREFIX + key: text})
    assert caught.value.key == PREFIX + key
    assert PREFIX + key in str(caught.value)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("retaind", "retained"),
        ("chain.maxdelta", "chain.maxDeltas"),
        ("max_parallelism", "maxParallelism"),
        ("MAXPARALLELISM", "maxParallelism"),
        ("bridge.Timeout", "bridge.timeout"),
    ],
)
def test_an_unknown_key_names_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean {PREFIX}{nearest}\\?"):
        CheckpointConfig.parse({PREFIX + key: "1"})


def test_an_unknown_key_like_no_other_names_all() -> None:
    with pytest.raises(SettingError, match=r"are ackMemory, ackThreshold, bridge\.silence"):
        CheckpointConfig.parse({PREFIX + "zzz": "1"})
