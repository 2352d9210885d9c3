"""Settings that are possible one by one, and not together."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from spark_ckpt.config.keys import PREFIX
from spark_ckpt.config.retries import all_pauses
from spark_ckpt.errors import SettingError

if TYPE_CHECKING:
    from spark_ckpt.config.checkpoint_config import CheckpointConfig

_ZOOKEEPER = PREFIX + "zookeeper."


def check_contradictions(config: CheckpointConfig, given: Collection[str]) -> None:
    """Check that the settings of a query do not contradict each other.

    Args:
        config: their values.
        given: the keys that are set.

    Raises:
        SettingError: two of them do not. The message names both.
    """
    if config.store == "zookeeper":
        _check_zookeeper(config)
    else:
        unused = sorted(key for key in given if key.startswith(_ZOOKEEPER))
        if unused:
            raise SettingError(
                unused[0],
                f"only the store zookeeper has a use for it, and the store is {config.store}: set "
                f"{PREFIX}store=zookeeper, or leave this setting out",
            )
    if PREFIX + "retained" in given and config.cleanup == "deleteOnEnd":
        raise SettingError(
            PREFIX + "retained",
            f"{PREFIX}cleanup=deleteOnEnd deletes every checkpoint when the query ends, so there is none to go back "
            "to: leave one of the two settings out",
        )
    pauses = all_pauses(config.tolerable_failures)
    if pauses >= config.bridge_timeout:
        raise SettingError(
            PREFIX + "bridge.timeout",
            f"{config.bridge_timeout:g} s end before the tries that {PREFIX}tolerableFailures="
            f"{config.tolerable_failures} allows, which have pauses of {pauses:g} s between them: raise this setting, "
            "or tolerate fewer failures",
        )


def _check_zookeeper(config: CheckpointConfig) -> None:
    if config.zookeeper_quorum is None:
        raise SettingError(
            PREFIX + "zookeeper.quorum", "the store zookeeper needs it: servers as host:port, with commas"
        )
    if config.zookeeper_session_timeout >= config.bridge_timeout:
        raise SettingError(
            PREFIX + "zookeeper.sessionTimeout",
            f"a task gives up after {config.bridge_timeout:g} s ({PREFIX}bridge.timeout), before a request to "
            f"ZooKeeper does after {config.zookeeper_session_timeout:g} s: make this setting the shorter one",
        )
