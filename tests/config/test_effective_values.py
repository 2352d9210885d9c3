"""Values of settings as text."""

from __future__ import annotations

from spark_ckpt.config import PREFIX, SETTINGS, CheckpointConfig, effective_values


def test_a_query_without_settings_has_the_defaults() -> None:
    values = effective_values({})
    assert [value.suffix for value in values] == [setting.suffix for setting in SETTINGS]
    assert not any(value.is_set for value in values)
    assert [value.default for value in values] == [value.text for value in values]
    defaults = {PREFIX + value.suffix: value.text for value in values if value.text}
    del defaults[PREFIX + "zookeeper.path"], defaults[PREFIX + "zookeeper.sessionTimeout"]  # need that store
    assert CheckpointConfig.parse(defaults) == CheckpointConfig()


def test_a_value_that_is_set_stays_as_it_was_written() -> None:
    values = {value.suffix: value for value in effective_values({f"{PREFIX}ackMemory": " 64m ", "other": "1"})}
    assert values["ackMemory"][1:] == ("64m", True, effective_values({})[list(values).index("ackMemory")].text)
    assert "other" not in values
