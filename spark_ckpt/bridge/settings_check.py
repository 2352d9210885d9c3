"""Handler of the `check` message, which carries the settings of a query before its first batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_ckpt.config import CheckpointConfig


def check_settings(header: Mapping[str, Any]) -> None:
    """Checks that a query can run with its settings.

    Raises:
        SettingError: a setting is misspelt, has an invalid value, or contradicts another one.
    """
    CheckpointConfig.parse({str(key): str(text) for key, text in header["settings"].items()})
