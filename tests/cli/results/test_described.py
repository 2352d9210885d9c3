from __future__ import annotations

from enum import Enum
from types import SimpleNamespace

import pytest

from spark_ckpt.cli.results.described import described

DAMAGE = SimpleNamespace(path="a", reason="b", offset=None, subtask=None, key_group=3)


class Status(Enum):
    OK = "ok"


def test_fields_are_attributes_of_the_first_source_that_has_them() -> None:
    verdict = SimpleNamespace(is_whole=False, can_go_back=True, blocks=1, size=2, rows=3, damages=(DAMAGE,))
    record = SimpleNamespace(id=7, batch_id=8, version=9, rows=100, secret="x")
    assert described("verdict", verdict, record) == {
        "id": 7,
        "batch_id": 8,
        "version": 9,
        "whole": False,
        "can_go_back": True,
        "blocks": 1,
        "bytes": 2,
        "rows": 3,
        "damages": [vars(DAMAGE)],
    }


def test_a_given_value_comes_first() -> None:
    assert described("undeleted", SimpleNamespace(path="a", reason="b"), reason="c") == {"path": "a", "reason": "c"}


def test_a_tuple_has_the_fields_in_their_order() -> None:
    store = SimpleNamespace(operator_id=0, name="n", store="s", partitions=1, rows=None, size=None)
    families = described("transferred_store", store, families={"a": None, "b": 2}.items())["families"]
    assert families == [{"name": "a", "rows": None}, {"name": "b", "rows": 2}]


def test_values_that_are_no_json_are_text() -> None:
    finding = SimpleNamespace(name="n", status=Status.OK, answer=1.5, advice=None, command=None, error=None, data={})
    assert described("finding", finding)["status"] == "ok"
    assert described("column", SimpleNamespace(name="a", type=complex(1, 2))) == {"name": "a", "type": "(1+2j)"}


def test_values_of_any_type_are_as_given() -> None:
    assert described("master_state", name="n", version=1, size=3, payload=[1])["payload"] == [1]


def test_a_field_that_may_be_missing_is_only_given() -> None:
    segment = SimpleNamespace(version=5, size=6, first_version=4, is_compressed=True)
    assert described("segment", segment, kind="delta") == {"kind": "delta", "version": 5, "size": 6}
    assert described("segment", segment, kind="delta", first_version=4)["first_version"] == 4


def test_a_field_without_a_value_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no value for the field reason of undeleted"):
        described("undeleted", SimpleNamespace(path="a"))
