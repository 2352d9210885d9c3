from __future__ import annotations

import pytest

from spark_ckpt.config import PREFIX, SETTINGS, CheckpointConfig
from spark_ckpt.errors import SettingError


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
        config.inline_threshold,
        config.store,
        config.zookeeper_quorum,
        config.zookeeper_path,
        config.zookeeper_session_timeout,
        config.cleanup,
        config.on_damage,
        config.timeout,
        config.tolerable_failures,
        config.history,
        config.ack_threshold,
        config.max_deltas,
        config.max_delta_ratio,
        config.change_feed,
        config.python,
        config.bridge_timeout,
    ]


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
        cleanup="deleteoncancellation",
        onDamage="rollback",
        timeout="3600",
        tolerableFailures="0",
        history="25",
        ackThreshold="1048576",
        chain__maxDeltas="8",
        chain__maxDeltaRatio="0.5",
        changeFeed="Writes",
        python="/usr/bin/python3",
        bridge__timeout="12.5",
    )
    assert config == CheckpointConfig(
        max_parallelism=1600,
        retained=5,
        inline_threshold=0,
        store="zookeeper",
        zookeeper_quorum="zk-1:2181,zk-2:2181",
        zookeeper_path="/streams",
        zookeeper_session_timeout=30.0,
        cleanup="deleteOnCancellation",
        on_damage="rollBack",
        timeout=3600.0,
        tolerable_failures=0,
        history=25,
        ack_threshold=1 << 20,
        max_deltas=8,
        max_delta_ratio=0.5,
        change_feed="writes",
        python="/usr/bin/python3",
        bridge_timeout=12.5,
    )


def test_the_store_zookeeper_needs_its_servers() -> None:
    with pytest.raises(SettingError, match="host:port") as caught:
        parse(store="zookeeper")
    assert caught.value.key == PREFIX + "zookeeper.quorum"
    assert parse(zookeeper__quorum="zk:2181").store == "filesystem"


def test_keys_are_matched_whatever_their_case() -> None:
    assert parse(MAXPARALLELISM="64").max_parallelism == 64


def test_settings_of_others_are_left_alone() -> None:
    others = {"spark.sql.streaming.stateStore.providerClass": "x", "spark.sql.streaming.stateStore.ckptX": "y"}
    assert CheckpointConfig.parse(others) == CheckpointConfig()


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("maxParallelism", "0", "0 is not a whole number from 1 to 32768"),
        ("maxParallelism", "32769", "from 1 to 32768"),
        ("retained", "many", "'many' is not a whole number of 1 or more"),
        ("inlineThreshold", "1048577", "from 0 to 1048576"),
        ("ackThreshold", "-1", "of 0 or more"),
        ("store", "postgres", "'postgres' is not one of: filesystem, standalone, zookeeper"),
        ("zookeeper.quorum", "", "empty value"),
        ("zookeeper.path", "streams", "'streams' is not a path such as"),
        ("zookeeper.path", "/", "'/' is not a path such as"),
        ("zookeeper.path", "/a//b", "is not a path such as"),
        ("zookeeper.sessionTimeout", "0", "not a number above 0"),
        ("cleanup", "delete", "'delete' is not one of: retain, deleteOnCancellation, deleteOnEnd"),
        ("timeout", "0", "not a number above 0"),
        ("tolerableFailures", "21", "from 0 to 20"),
        ("history", "0", "from 1 to 1000"),
        ("chain.maxDeltas", "1.5", "'1.5' is not a whole number"),
        ("chain.maxDeltaRatio", "0", "not a number above 0"),
        ("chain.maxDeltaRatio", "nan", "not a number above 0"),
        ("chain.maxDeltaRatio", "inf", "not a number above 0"),
        ("changeFeed", "all", "'all' is not one of: outcome, writes"),
        ("bridge.timeout", "-3", "not a number above 0"),
        ("python", "", "empty value"),
    ],
)
def test_a_value_that_cannot_be_names_the_key_and_what_is_allowed(key: str, text: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason) as caught:
        CheckpointConfig.parse({PREFIX + key: text})
    assert caught.value.key == PREFIX + key
    assert PREFIX + key in str(caught.value)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("retaind", "retained"), ("chain.maxdelta", "chain.maxDeltas"), ("max_parallelism", "maxParallelism")],
)
def test_an_unknown_key_names_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean {PREFIX}{nearest}\\?"):
        CheckpointConfig.parse({PREFIX + key: "1"})


def test_an_unknown_key_like_no_other_names_all() -> None:
    with pytest.raises(SettingError, match=r"there are ackThreshold, bridge\.timeout"):
        CheckpointConfig.parse({PREFIX + "zzz": "1"})
