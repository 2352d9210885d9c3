"""State of an earlier query as that of a changed one: every kind of change is sound, asked, or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.evolution.choices import NO_CHOICES, Choices
from spark_ckpt.evolution.mapping import StateMapping, map_state
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.spark_files.operator_metadata import VariableKind
from tests.evolution.planned import COUNT, MAX, SUM, family, store
from tests.support.meanings import MINUTE, function, meaning, window
from tests.support.state_location import schema

K, KJ, JK = schema(k="string"), schema(k="string", j="integer"), schema(j="integer", k="string")
C, CS, SC = schema(count="long"), schema(count="long", sum="long"), schema(sum="long", count="long")
OLD = store(K, CS, rows=9)
OLD_MEANING = meaning(functions=(COUNT, SUM))


def mapped(
    new: StoreSchema,
    means: QueryMeaning,
    old: StoreSchema = OLD,
    meant: QueryMeaning = OLD_MEANING,
    choices: Choices = NO_CHOICES,
) -> StateMapping:
    return map_state([old], meant, [new], means, choices)


def test_without_a_change_files_are_kept() -> None:
    (only,) = mapped(store(K, CS), OLD_MEANING).stores
    assert only.keeps_files
    assert only.notes == ("count(1): kept", "sum(v): kept")


def test_reordered_functions_are_rewritten() -> None:
    (only,) = mapped(store(K, SC), meaning(functions=(SUM, COUNT))).stores
    assert not only.keeps_files
    assert [column.source for column in only.families[0].value] == [1, 0]


def test_a_kept_function_with_a_time_of_day_in_it_says_so() -> None:
    timed = function("max(CASE WHEN (0.at >= 2013-07-01 00:00:00) THEN 0.v END)", ("max",))
    old, means = store(K, schema(max="long")), meaning(functions=(timed,))
    (only,) = mapped(old, means, old, means).stores
    assert only.notes == (f"{timed.shown}: kept",)


def test_a_dropped_function_leaves_the_others() -> None:
    (only,) = mapped(store(K, C), meaning(functions=(COUNT,))).stores
    assert [column.source for column in only.families[0].value] == [0]
    assert "sum(v): dropped" in only.notes


def test_a_new_function_begins_without_input() -> None:
    new = store(K, schema(count="long", sum="long", max="integer"))
    (only,) = mapped(new, meaning(functions=(COUNT, SUM, MAX))).stores
    assert (only.families[0].value[2].source, only.families[0].value[2].value) == (None, None)
    given = Choices(initial={"max(v)": [7]})
    (only,) = mapped(new, meaning(functions=(COUNT, SUM, MAX)), choices=given).stores
    assert only.families[0].value[2].value == 7


def test_one_came_and_one_went_is_asked() -> None:
    new, means = store(K, schema(count="long", max="integer")), meaning(functions=(COUNT, MAX))
    (problem,) = mapped(new, means).problems
    assert "max(v) came, and sum(v) went" in problem
    assert not mapped(new, means, choices=Choices(functions={"max(v)": None})).problems
    (problem,) = mapped(new, means, choices=Choices(functions={"max(v)": "sum(v)"})).problems
    assert "was int64 and is int32 now" in problem
    (problem,) = mapped(new, means, choices=Choices(functions={"max(v)": "sum(x)"})).problems[:1]
    assert "the earlier query had no function sum(x)" in problem


def test_a_wider_buffer_is_sound() -> None:
    old, meant = store(K, schema(max="integer"), rows=1), meaning(functions=(MAX,))
    (only,) = mapped(store(K, schema(max="long")), meant, old, meant).stores
    assert only.families[0].value[0].is_widened
    assert only.notes == ("max(v): int32 becomes int64",)


def test_keys_in_another_order_and_wider() -> None:
    old, meant = store(KJ, C, rows=1), meaning(("0.k", "0.j"), (COUNT,))
    new = store(schema(jj="long", k="string"), C)
    (only,) = mapped(new, meaning(("0.j", "0.k"), (COUNT,)), old, meant).stores
    assert [(column.source, column.is_widened) for column in only.families[0].grouping] == [(1, True), (0, False)]


@pytest.mark.parametrize(
    ("means", "words"),
    [
        (meaning(("upper(0.k)",), (COUNT, SUM)), "is upper(0.k), and was 0.k: equal keys would not meet"),
        (meaning(("0.x",), (COUNT, SUM)), "the key column x is 0.x, and was 0.k"),
    ],
)
def test_a_key_that_is_computed_otherwise_is_refused(means: QueryMeaning, words: str) -> None:
    (problem,) = mapped(store(K, CS), means).problems
    assert words in problem
    told = Choices(keys={means.operators[0].keys[0].name: "k"})
    assert not mapped(store(K, CS), means, choices=told).problems


def test_a_key_column_that_is_new_is_refused() -> None:
    (problem,) = mapped(store(KJ, CS), meaning(("0.k", "0.j"), (COUNT, SUM))).problems
    assert "the key column j (0.j) is new. The state of a key cannot be divided" in problem
    begun = mapped(store(KJ, CS), meaning(("0.k", "0.j"), (COUNT, SUM)), choices=Choices(operators={0: None}))
    assert "operator 0 (stateStoreSave) of the earlier query is gone, with 9 rows" in begun.problems[0]
    both = Choices(operators={0: None}, drop=[0])
    assert not mapped(store(KJ, CS), meaning(("0.k", "0.j"), (COUNT, SUM)), choices=both).problems


def test_a_key_column_less_merges_what_can_be_merged() -> None:
    old, meant = store(KJ, CS, rows=1), meaning(("0.k", "0.j"), (COUNT, SUM))
    (only,) = mapped(store(K, CS), OLD_MEANING, old, meant).stores
    assert only.families[0].merges == ("sum", "sum")
    lists = function("collect_list(0.v)", ("buf",))
    old, meant = store(KJ, schema(buf="binary"), rows=1), meaning(("0.k", "0.j"), (lists,))
    (problem,) = mapped(store(K, schema(buf="binary")), meaning(functions=(lists,)), old, meant).problems
    assert "Spark has no merge of buffers that can be used for collect_list(v)" in problem
    timed = meaning(("0.k", window(MINUTE, MINUTE)), (COUNT, SUM))
    (problem,) = mapped(store(K, CS), OLD_MEANING, store(KJ, CS, rows=1), timed).problems
    assert "windows that have ended are gone" in problem


def test_a_merge_of_floating_point_or_structs_is_refused() -> None:
    old, meant = store(KJ, schema(max="double"), rows=1), meaning(("0.k", "0.j"), (MAX,))
    (problem,) = mapped(store(K, schema(max="double")), meaning(functions=(MAX,)), old, meant).problems
    assert "the largest or smallest of type double cannot be" in problem


def test_another_window_is_refused() -> None:
    old, meant = store(K, C, rows=1), meaning((window(MINUTE, MINUTE),), (COUNT,))
    (problem,) = mapped(store(K, C), meaning((window(5 * MINUTE, MINUTE),), (COUNT,)), old, meant).problems
    assert "window(0.ts, 5 min long, every 1 min) was window(0.ts, 1 min long)" in problem


def test_another_kind_of_join_is_refused() -> None:
    old = store(K, C, name="symmetricHashJoin", rows=1)
    inner = meaning(name="symmetricHashJoin", detail="INNER join", right_keys=("1.k",))
    outer = meaning(name="symmetricHashJoin", detail="LEFT OUTER join", right_keys=("1.k",))
    (problem,) = mapped(store(K, C, name="symmetricHashJoin"), outer, old, inner).problems
    assert "a LEFT OUTER join was a INNER join" in problem
    swapped = meaning(("1.k",), name="symmetricHashJoin", detail="INNER join", right_keys=("0.k",))
    assert mapped(store(K, C, name="symmetricHashJoin"), swapped, old, inner).problems


def test_payload_columns_go_by_name() -> None:
    name, means = "symmetricHashJoin", meaning(name="symmetricHashJoin", right_keys=("1.k",))
    old = store(K, schema(v="integer", gone="string"), name=name, rows=1)
    new = store(K, schema(added="long", v="long"), name=name)
    (only,) = mapped(new, means, old, means, Choices(values={"added": 5})).stores
    assert [(column.source, column.value) for column in only.families[0].value] == [(None, 5), (0, None)]
    assert only.families[0].value[1].is_widened
    required = store(K, schema(added="long", v="long"), name=name, required=["added"])
    (problem,) = mapped(required, means, old, means).problems
    assert "--value 'added=...'" in problem


def variable(kind: VariableKind, value: str, *, ttl: bool = False, rows: int = 1) -> StoreSchema:
    families = (family(schema(k="string"), schema(n=value), "n"),)
    with_ttl = frozenset({"n"} if ttl else ())
    return StoreSchema(0, "default", "transformWithStateExec", families, {"n": kind}, with_ttl, rows)


def test_variables() -> None:
    means = meaning(name="transformWithStateExec")
    value = variable(VariableKind.VALUE, "integer")
    (only,) = mapped(variable(VariableKind.VALUE, "long"), means, value, means).stores
    assert only.families[0].value[0].is_widened
    (problem,) = mapped(variable(VariableKind.LIST, "integer"), means, value, means).problems
    assert "a ListState was a ValueState" in problem
    (problem,) = mapped(variable(VariableKind.VALUE, "integer", ttl=True), means, value, means).problems
    assert "a time to live cannot be added" in problem
    (problem,) = mapped(variable(VariableKind.VALUE, "string"), means, value, means).problems
    assert "n was int32 and is string now" in problem
    avro = replace(variable(VariableKind.VALUE, "long"), is_avro=True)
    (problem,) = mapped(avro, means, value, means).problems
    assert "Avro" in problem


def test_an_operator_that_is_added_before_another_moves_it() -> None:
    aggregation = OLD_MEANING.operators[0]
    dedup = meaning(("0.k",), name="dedupe").operators[0]
    means = QueryMeaning(OLD_MEANING.sources, (replace(dedup, operator_id=0), replace(aggregation, operator_id=1)))
    stores = [store(K, schema(d="integer"), name="dedupe"), store(K, CS, operator=1)]
    found = map_state([OLD], OLD_MEANING, stores, means, NO_CHOICES)
    assert [None if each.old is None else each.old.operator_id for each in found.stores] == [None, 0]
    assert found.stores[1].keeps_files


def test_two_operators_that_may_continue_one_are_asked() -> None:
    one = meaning(("0.k",), (COUNT,)).operators[0]
    two = tuple(
        replace(one, operator_id=number, keys=meaning((f"0.x{number}",)).operators[0].keys) for number in (0, 1)
    )
    means = QueryMeaning(OLD_MEANING.sources, two)
    stores = [store(K, C, operator=number) for number in (0, 1)]
    found = map_state([store(K, C, rows=3)], meaning(("0.k",), (COUNT,)), stores, means, NO_CHOICES)
    assert "operator 0 (stateStoreSave) may continue operator 0 of the earlier query" in found.problems[0]
    told = Choices(operators={0: None, 1: 0}, keys={"x1": "k"})
    found = map_state([store(K, C, rows=3)], meaning(("0.k",), (COUNT,)), stores, means, told)
    assert found.problems == ()
    wrong = map_state([OLD], OLD_MEANING, [store(K, CS)], OLD_MEANING, Choices(operators={5: 0, 0: 7}))
    assert "no operator 5" in wrong.problems[0]
    assert "had no operator 7" in wrong.problems[1]
