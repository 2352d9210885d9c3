"""Handler of the `check` message, with the settings of a query before its first batch."""

from __future__ import annotations

from collections.abc import Mapping

from spark_ckpt.bridge.tracing import OTEL, check_installed
from spark_ckpt.config import CheckpointConfig


def check_settings(settings: Mapping[str, str]) -> None:
    """Checks that a query can run with its settings.

    Args:
        settings: keys of the session that may be meant for us, with their values.

    Raises:
        SettingError: a setting is misspelt, has an invalid value, contradicts another one, or needs a package that is
            not installed.
    """
    config = CheckpointConfig.parse(settings)
    if config.tracing == OTEL:
        check_installed()
