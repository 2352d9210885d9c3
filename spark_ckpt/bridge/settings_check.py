"""Handler of the `check` message, which carries the settings of a query before its first batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_ckpt.bridge.tracing import OTEL, check_installed
from spark_ckpt.config import CheckpointConfig


def check_settings(header: Mapping[str, Any]) -> None:
    """Checks that a query can run with its settings.

    Raises:
        SettingError: a setting is misspelt, has an invalid value, contradicts another one, or needs a package that is
            not installed.
    """
    config = CheckpointConfig.parse({str(key): str(text) for key, text in header["settings"].items()})
    if config.tracing == OTEL:
        check_installed()
