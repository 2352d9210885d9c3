"""Values of all settings of a query, as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spark_ckpt.config.settings import SETTINGS
from spark_ckpt.config.value_parsers import Setting

_DEPENDS = ""


class EffectiveValue(NamedTuple):
    """Value of a setting.

    Args:
        suffix: key of the setting without `PREFIX`.
        text: the value as it was set, or the default; empty if that depends on the query.
        is_set: True if it was set, False if it is the default.
        default: the default; empty if it depends on the query.
    """

    suffix: str
    text: str
    is_set: bool
    default: str


def effective_values(settings: Mapping[str, str]) -> list[EffectiveValue]:
    """Values of all settings, in the order of their table.

    Args:
        settings: the settings of a query, by their full keys.
    """
    return [_value(setting, settings) for setting in SETTINGS]


def _value(setting: Setting[Any], settings: Mapping[str, str]) -> EffectiveValue:
    default = _default(setting)
    return EffectiveValue(setting.suffix, settings.get(setting.key, default).strip(), setting.key in settings, default)


def _default(setting: Setting[Any]) -> str:
    if setting.default is None:
        return _DEPENDS
    return f"{setting.default:g}s" if setting.kind == "duration" else str(setting.default)
