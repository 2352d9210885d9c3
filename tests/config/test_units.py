from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.config import units

TABLE = Path(__file__).parents[2] / "jvm-shim" / "shim" / "src" / "test" / "resources" / "setting-values.tsv"


def examples() -> list[tuple[str, str, str]]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [(kind, text, value) for kind, text, value in (line.split("\t") for line in lines if line[0] != "#")]


@pytest.mark.parametrize(("kind", "text", "value"), examples())
def test_a_text_has_the_value_that_the_table_of_both_languages_says(kind: str, text: str, value: str) -> None:
    parse = {"duration": units.milliseconds, "size": units.size, "share": units.share}[kind]
    if value == "-":
        with pytest.raises(ValueError, match="is not a"):
            parse(text)
    else:
        assert parse(text) == int(value)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("5", 5), ("20k", 20_000), ("20K", 20_000), ("2m", 2_000_000)])
def test_a_count_has_thousands(text: str, value: int) -> None:
    assert units.count(text) == value


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1.5k", "20kb", "1g", "k", "many", "1e3", "1_000", "5 k", "٣"])
def test_other_texts_are_no_count(text: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        units.count(text)


@pytest.mark.parametrize(
    ("value", "text"), [(5, "5"), (300.0, "300.0"), (0.5, "0.5"), (1e-5, "0.00001"), (1e20, "100000000000000000000")]
)
def test_the_text_of_a_number_has_no_exponent(value: float, text: str) -> None:
    assert units.plain_number(value) == text


def test_the_text_of_what_is_no_number_is_refused_as_a_duration() -> None:
    for value in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="is not a duration"):
            units.milliseconds(units.plain_number(value))
