"""Contradictions between settings that are valid on their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from spark_ckpt.config.keys import PREFIX
from spark_ckpt.config.retries import all_pauses
from spark_ckpt.errors import SettingError

if TYPE_CHECKING:
    from spark_ckpt.config.checkpoint_config import CheckpointConfig

_ZOOKEEPER = PREFIX + "zookeeper."


def check_contradictions(config: CheckpointConfig, explicit_keys: Collection[str]) -> None:
    """Check that the settings of a query do not contradict each other.

    Args:
        config: their values.
        explicit_keys: keys of the explicit settings.

    Raises:
        SettingError: two settings contradict each other. The message names both.
    """
    if config.store == "zookeeper":
        _check_zookeeper(config)
    else:
        unused = sorted(key for key in explicit_keys if key.startswith(_ZOOKEEPER))
        if unused:
            raise SettingError(
                unused[0],
                f"only the store zookeeper uses it, but the store is {config.store}: set {PREFIX}store=zookeeper, or "
                "remove this setting",
            )
    retained = [key for key in (PREFIX + "retained", PREFIX + "retainedAge") if key in explicit_keys]
    if retained and config.cleanup == "deleteOnEnd":
        raise SettingError(
            retained[0],
            f"{PREFIX}cleanup=deleteOnEnd deletes every checkpoint when the query ends, so none is retained: remove "
            "one of the two settings",
        )
    if PREFIX + "bridge.silence" in explicit_keys and config.bridge_silence >= config.bridge_timeout:
        raise SettingError(
            PREFIX + "bridge.silence",
            f"{config.bridge_silence:g} s must be shorter than {PREFIX}bridge.timeout ({config.bridge_timeout:g} s): "
            "otherwise tasks give up before a side process that hangs is replaced",
        )
    pauses = all_pauses(config.tolerable_failures)
    if pauses >= config.bridge_timeout:
        raise SettingError(
            PREFIX + "bridge.timeout",
            f"{config.bridge_timeout:g} s are too short for {PREFIX}tolerableFailures={config.tolerable_failures}: the "
            f"pauses between its retries add up to {pauses:g} s. Raise this setting, or tolerate fewer failures",
        )


def _check_zookeeper(config: CheckpointConfig) -> None:
    if config.zookeeper_quorum is None:
        raise SettingError(
            PREFIX + "zookeeper.quorum", "required by the store zookeeper: servers as host:port, separated by commas"
        )
    if config.zookeeper_session_timeout >= config.bridge_timeout:
        raise SettingError(
            PREFIX + "zookeeper.sessionTimeout",
            f"{config.zookeeper_session_timeout:g} s must be shorter than {PREFIX}bridge.timeout "
            f"({config.bridge_timeout:g} s): otherwise a task gives up before a request to ZooKeeper does",
        )
