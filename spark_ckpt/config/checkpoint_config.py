"""Typed values of all settings of one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from spark_ckpt.config.contradictions import check_contradictions
from spark_ckpt.config.keys import PREFIX, check_key, check_ours
from spark_ckpt.config.settings import (
    ACK_MEMORY,
    ACK_THRESHOLD,
    BRIDGE_SILENCE,
    BRIDGE_TIMEOUT,
    CHANGE_FEED,
    CLEANUP,
    COMPRESSION,
    HISTORY,
    INLINE_THRESHOLD,
    LOG_FORMAT,
    LOG_LEVEL,
    MAX_DELTA_RATIO,
    MAX_DELTAS,
    MAX_PARALLELISM,
    MEMORY_BUDGET,
    ON_DAMAGE,
    ON_QUERY_CHANGE,
    PYTHON,
    REAL_TIME_MODE,
    RESTORE,
    RETAINED,
    RETAINED_AGE,
    SETTINGS,
    STORE,
    TIMEOUT,
    TOLERABLE_FAILURES,
    TRACING,
    ZOOKEEPER_CLIENT_FILE,
    ZOOKEEPER_PATH,
    ZOOKEEPER_QUORUM,
    ZOOKEEPER_SESSION_TIMEOUT,
)
from spark_ckpt.config.value_parsers import Setting

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """Setting values of one query. Fields are named after the settings. None: no default, or one that depends on the
    query."""

    max_parallelism: int | None = None
    retained: int = 2
    retained_age: float | None = None
    inline_threshold: int = 20 * 1024
    store: str = "filesystem"
    zookeeper_quorum: str | None = None
    zookeeper_path: str = "/spark-ckpt"
    zookeeper_session_timeout: float = 60.0
    zookeeper_client_file: str | None = None
    cleanup: str = "retain"
    on_damage: str = "fail"
    on_query_change: str = "fail"
    timeout: float | None = None
    tolerable_failures: int = 2
    history: int = 10
    ack_threshold: int = 1 << 20
    ack_memory: int = 128 << 20
    memory_budget: str = "40%"
    max_deltas: int = 16
    max_delta_ratio: float = 1.0
    restore: str = "lazy"
    compression: str = "lz4"
    change_feed: str = "outcome"
    real_time_mode: str = "refused"
    python: str | None = None
    bridge_timeout: float = 300.0
    bridge_silence: float = 120.0
    log_level: str = "info"
    log_format: str = "text"
    tracing: str = "off"

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> CheckpointConfig:
        """The values of these settings. Keys of other products are ignored.

        Raises:
            SettingError: a key is unknown or misspelt, a value is invalid, or two settings contradict each other.
        """
        suffixes = [setting.suffix for setting in SETTINGS]
        for key in settings:
            check_key(key, suffixes)
        ours = {key: text for key, text in settings.items() if key.startswith(PREFIX)}
        config = cls(
            max_parallelism=MAX_PARALLELISM.value(ours),
            retained=_set(RETAINED, ours),
            retained_age=RETAINED_AGE.value(ours),
            inline_threshold=_set(INLINE_THRESHOLD, ours),
            store=_set(STORE, ours),
            zookeeper_quorum=ZOOKEEPER_QUORUM.value(ours),
            zookeeper_path=_set(ZOOKEEPER_PATH, ours),
            zookeeper_session_timeout=_set(ZOOKEEPER_SESSION_TIMEOUT, ours),
            zookeeper_client_file=ZOOKEEPER_CLIENT_FILE.value(ours),
            cleanup=_set(CLEANUP, ours),
            on_damage=_set(ON_DAMAGE, ours),
            on_query_change=_set(ON_QUERY_CHANGE, ours),
            timeout=TIMEOUT.value(ours),
            tolerable_failures=_set(TOLERABLE_FAILURES, ours),
            history=_set(HISTORY, ours),
            ack_threshold=_set(ACK_THRESHOLD, ours),
            ack_memory=_set(ACK_MEMORY, ours),
            memory_budget=_set(MEMORY_BUDGET, ours),
            max_deltas=_set(MAX_DELTAS, ours),
            max_delta_ratio=_set(MAX_DELTA_RATIO, ours),
            restore=_set(RESTORE, ours),
            compression=_set(COMPRESSION, ours),
            change_feed=_set(CHANGE_FEED, ours),
            real_time_mode=_set(REAL_TIME_MODE, ours),
            python=PYTHON.value(ours),
            bridge_timeout=_set(BRIDGE_TIMEOUT, ours),
            bridge_silence=_set(BRIDGE_SILENCE, ours),
            log_level=_set(LOG_LEVEL, ours),
            log_format=_set(LOG_FORMAT, ours),
            tracing=_set(TRACING, ours),
        )
        check_contradictions(config, ours)
        return config

    @classmethod
    def parse_strictly(cls, settings: Mapping[str, str]) -> CheckpointConfig:
        """The values of these settings, which must all be ours.

        Raises:
            SettingError: as in `parse`, and for keys of other products.
        """
        check_ours(settings, [setting.suffix for setting in SETTINGS])
        return cls.parse(settings)


def _set(setting: Setting[T], settings: Mapping[str, str]) -> T:
    value = setting.value(settings)
    assert value is not None, setting.key
    return value
