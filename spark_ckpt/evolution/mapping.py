"""State of the earlier query that becomes state of the changed one, or all reasons why not. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from spark_ckpt.checkpoint.meaning import OperatorMeaning, QueryMeaning
from spark_ckpt.evolution.choices import Choices
from spark_ckpt.evolution.columns import Column, FamilyMapping, fitted
from spark_ckpt.evolution.functions import map_buffers
from spark_ckpt.evolution.keys import KeyColumns, map_keys
from spark_ckpt.evolution.pairing import kind_of, pair_operators
from spark_ckpt.evolution.schemas import StoreSchema, of_operator
from spark_ckpt.evolution.type_changes import same_layout
from spark_ckpt.evolution.values import map_values
from spark_ckpt.figures import count
from spark_ckpt.spark_files.operator_metadata import VariableKind
from spark_ckpt.spark_files.operators import (
    AGGREGATION,
    DEDUPLICATION_WITHIN_WATERMARK,
    DEDUPLICATIONS,
    JOIN,
    SESSION_WINDOW,
)
from spark_ckpt.spark_files.schemas import FamilySchema
from spark_ckpt.spark_files.types import SparkType, Struct
from spark_ckpt.state.grouping import grouping_key
from spark_ckpt.state.unsafe_row_encoder import encodable


@dataclass(frozen=True, slots=True)
class StoreMapping:
    """A store of the changed query.

    Args:
        new: the store.
        old: the store whose rows it continues; None if it begins empty.
        families: its column families with earlier rows.
        notes: what becomes of each part, for people.
    """

    new: StoreSchema
    old: StoreSchema | None = None
    families: tuple[FamilyMapping, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def keeps_files(self) -> bool:
        """True if the earlier state files can be used as they are."""
        if self.old is None:
            return False
        continued = {family.old.name for family in self.families}
        return continued == {family.name for family in self.old.families} and all(
            family.is_identity for family in self.families
        )


@dataclass(frozen=True, slots=True)
class StateMapping:
    """State of the changed query.

    Args:
        stores: its stores, in the order of operators.
        dropped: what is left behind, for people.
        problems: every reason why the changed query cannot continue.
    """

    stores: tuple[StoreMapping, ...]
    dropped: tuple[str, ...]
    problems: tuple[str, ...]


def map_state(
    old: Sequence[StoreSchema],
    old_meaning: QueryMeaning,
    new: Sequence[StoreSchema],
    new_meaning: QueryMeaning,
    choices: Choices,
) -> StateMapping:
    """Maps the state of a query to that of a changed one.

    Args:
        old: stores of the earlier query.
        old_meaning: what they mean.
        new: stores of the changed query.
        new_meaning: what they mean.
        choices: what the user has said.
    """
    pairs = pair_operators(old_meaning, new_meaning, choices)
    problems = list(pairs.problems)
    dropped: list[str] = []
    stores: list[StoreMapping] = []
    for operator in new_meaning.operators:
        number = pairs.earlier[operator.operator_id]
        was = None if number is None else old_meaning.operator(number)
        ours = of_operator(new, operator.operator_id)
        if was is None:
            stores += [StoreMapping(store, notes=("begins empty",)) for store in ours]
        elif kind_of(was.name) != kind_of(operator.name):
            problems.append(f"{ours[0].title} cannot continue operator {was.operator_id}, which was a {was.name}")
        else:
            pair = _Pair(was, of_operator(old, was.operator_id), operator, ours, choices, problems)
            stores += pair.mappings()
            dropped += pair.dropped
    used = set(pairs.earlier.values())
    for operator in old_meaning.operators:
        if operator.operator_id not in used and not pairs.problems:
            dropped += _left_behind(operator, of_operator(old, operator.operator_id), choices, problems)
    return StateMapping(tuple(stores), tuple(dropped), tuple(problems))


def _left_behind(
    operator: OperatorMeaning, stores: Sequence[StoreSchema], choices: Choices, problems: list[str]
) -> list[str]:
    number, rows = operator.operator_id, sum(store.rows for store in stores)
    if rows and number not in choices.drop:
        problems.append(
            f"operator {number} ({operator.name}) of the earlier query is gone, with {count(rows, 'row')} of state. To "
            f"leave them behind: --drop {number}. If it is another operator now: --operator NEW={number}"
        )
    return [f"operator {number} ({operator.name}): {count(rows, 'row')} left behind"]


class _Pair:
    """An operator of both queries."""

    def __init__(
        self,
        was: OperatorMeaning,
        old: Sequence[StoreSchema],
        operator: OperatorMeaning,
        new: Sequence[StoreSchema],
        choices: Choices,
        problems: list[str],
    ) -> None:
        self._was = was
        self._old = {store.store: store for store in old}
        self._operator = operator
        self._new = new
        self._choices = choices
        self._problems = problems
        self.dropped: list[str] = []

    def mappings(self) -> list[StoreMapping]:
        """Mappings of the operator's stores; without all of them if there are problems."""
        title = self._new[0].title
        if self._was.detail != self._operator.detail:
            self._problems.append(f"{title}: {self._other_detail()}")
            return []
        if self._old.keys() != {store.store for store in self._new}:
            self._problems.append(f"{title}: its stores were {', '.join(self._old)}, which is another format of state")
            return []
        keys = map_keys(self._was, self._operator, self._choices, self._problems)
        if keys is None:
            return []
        return [
            mapping for store in self._new if (mapping := self._store(self._old[store.store], store, keys)) is not None
        ]

    def _other_detail(self) -> str:
        way_out = f"Begin empty with --operator {self._operator.operator_id}=, or rebuild the state from history"
        if self._operator.name == JOIN:
            return (
                f"a {self._operator.detail} was a {self._was.detail}. Rows that have left the state were judged by the "
                f"earlier kind, and those in it lack the marks of the other. {way_out}"
            )
        return f"its session windows have another gap or time column, and sessions have ended by the earlier. {way_out}"

    def _store(self, old: StoreSchema, new: StoreSchema, keys: KeyColumns) -> StoreMapping | None:
        before = len(self._problems)
        families: list[FamilyMapping] = []
        notes: list[str] = []
        for family in new.families:
            was = old.family(family.name)
            if was is None:
                if not family.name.startswith("$"):
                    notes.append(f"{family.name}: begins empty")
                continue
            mapped = self._family(old, was, new, family, keys)
            if mapped is not None:
                families.append(mapped[0])
                notes += mapped[1]
        for family in old.families:
            if new.family(family.name) is None and not family.name.startswith("$"):
                self.dropped.append(f"{new.title}, {family.name}: left behind")
        if len(self._problems) > before:
            return None
        mapping = StoreMapping(new, old, tuple(families), tuple(notes))
        if not mapping.keeps_files and not self._can_rewrite(old, new, families):
            return None
        return mapping

    def _can_rewrite(self, old: StoreSchema, new: StoreSchema, families: Sequence[FamilyMapping]) -> bool:
        """Check that all rows of a store can be read and written."""
        before = len(self._problems)
        if old.is_avro or new.is_avro:
            self._problems.append(f"{new.title}: its values are in Avro, which only Spark reads and writes")
        for family in families:
            types = (family.old.key, family.new.key, family.old.value, family.new.value)
            if not all(encodable(kind) for kind in types):
                self._problems.append(
                    f"{new.title}, {family.new.name}: its rows have intervals or variants, which cannot be written yet"
                )
        return len(self._problems) == before

    # ---- families ----------------------------------------------------------------------------------------------------

    def _family(
        self, old: StoreSchema, was: FamilySchema, new: StoreSchema, family: FamilySchema, keys: KeyColumns
    ) -> tuple[FamilyMapping, list[str]] | None:
        if old.variables.get(family.name) != new.variables.get(family.name):
            before, now = (store.variables.get(family.name, VariableKind.VALUE).value for store in (old, new))
            self._problems.append(
                f"{new.title}, {family.name}: a {now} was a {before}. Give the state variable another name"
            )
            return None
        if (family.name in old.with_ttl) != (family.name in new.with_ttl):
            self._problems.append(
                f"{new.title}, {family.name}: a time to live cannot be added to its rows, nor taken from them. Give "
                "the state variable another name"
            )
            return None
        grouping = self._grouping(old, was, new, family, keys)
        if grouping is None:
            return None
        columns, old_grouping, notes = grouping
        values = self._values(was, new, family, keys)
        if values is None:
            return None
        value, merges, value_notes = values
        if keys.gone:
            merges = merges or ("any",) * len(value)
            if unfit := [kind for how, kind in zip(merges, family.value.types, strict=True) if not _merges(how, kind)]:
                self._problems.append(
                    f"{new.title}: without the key column, states would have to be merged, and the largest or smallest "
                    f"of type {unfit[0].arrow} cannot be. Begin empty with --operator {new.operator_id}=, or rebuild "
                    "the state from history"
                )
                return None
            gone = ", ".join(self._was.keys[index].shown for index in keys.gone)
            notes.append(f"without the key column {gone}: {_merged(new)}")
        else:
            merges = ()
        mapping = FamilyMapping(was, family, columns, value, merges, old_grouping)
        return mapping, [*notes, *value_notes]

    def _grouping(
        self, old: StoreSchema, was: FamilySchema, new: StoreSchema, family: FamilySchema, keys: KeyColumns
    ) -> tuple[tuple[Column, ...], Struct, list[str]] | None:
        """Columns of the grouping key, and the rest of a key, which stays as it is."""
        ours, theirs = grouping_key(new.as_store(), family), grouping_key(old.as_store(), was)
        kind, old_kind = (Struct((), ()) if each is None else each.kind for each in (ours, theirs))
        if len(kind.types) != len(keys.sources):
            # Without a meaning of its keys, such as a limit, an operator keeps them.
            if [*kind.types] != [*old_kind.types]:
                self._problems.append(f"{new.title}, {family.name}: its keys have other types")
                return None
            return tuple(Column(index) for index in range(len(kind.types))), old_kind, []
        paths = [() if each is None else each.path for each in (theirs, ours)]
        rests = [_rest(was.key, paths[0], len(old_kind.types)), _rest(family.key, paths[1], len(kind.types))]
        if len(rests[0]) != len(rests[1]) or not all(map(same_layout, *rests)):
            self._problems.append(f"{new.title}, {family.name}: its keys have other types behind the grouping key")
            return None
        columns: list[Column] = []
        notes: list[str] = []
        for index, source in enumerate(keys.sources):
            column = fitted(old_kind, source, kind.types[index])
            name = self._operator.keys[index].shown
            before, now = old_kind.types[source].arrow, kind.types[index].arrow
            if column is None:
                self._problems.append(
                    f"{new.title}: the key column {name} was {before} and is {now} now, which does not have all of its "
                    f"values. Keep the type, or begin empty with --operator {new.operator_id}="
                )
                return None
            if column.is_widened:
                notes.append(f"key {name}: {before} becomes {now}")
            columns.append(column)
        if list(keys.sources) != sorted(keys.sources):
            notes.append(f"key: {', '.join(key.shown for key in self._operator.keys)}, in another order")
        return tuple(columns), old_kind, notes

    def _values(
        self, was: FamilySchema, new: StoreSchema, family: FamilySchema, keys: KeyColumns
    ) -> tuple[tuple[Column, ...], tuple[str, ...], list[str]] | None:
        """Columns of the value, how they are merged, and notes."""
        if not self._operator.functions or kind_of(new.name) not in (AGGREGATION, SESSION_WINDOW):
            named = map_values(new, was, family, self._choices, self._problems)
            if named is None:
                return None
            merges = ("max",) * len(named[0]) if new.name == DEDUPLICATION_WITHIN_WATERMARK else ()
            return named[0], merges, list(named[1])
        sizes = [sum(len(function.buffers) for function in each.functions) for each in (self._was, self._operator)]
        old_lead, lead = len(was.value.types) - sizes[0], len(family.value.types) - sizes[1]
        leading = self._leading(was, family, old_lead, lead, keys)
        if leading is None:
            self._problems.append(f"{new.title}: the columns of its state are not those of its functions")
            return None
        old_buffers, new_buffers = _part(was.value, old_lead), _part(family.value, lead)
        buffers = map_buffers(self._was, self._operator, old_buffers, new_buffers, self._choices, self._problems)
        if buffers is None:
            return None
        shifted = tuple(_shifted(column, old_lead) for column in buffers.columns)
        merges = () if lead else buffers.merges
        return (*leading, *shifted), merges, list(buffers.notes)

    def _leading(
        self, was: FamilySchema, family: FamilySchema, old_lead: int, lead: int, keys: KeyColumns
    ) -> list[Column] | None:
        """Columns of the key in the values of session windows: the grouping key, and the session among them."""
        if not lead and not old_lead:
            return []
        names, old_names = list(family.value.names[:lead]), list(was.value.names[:old_lead])
        ours, theirs = [key.name for key in self._operator.keys], [key.name for key in self._was.keys]
        session = [name for name in names if name not in ours]
        old_session = [name for name in old_names if name not in theirs]
        if lead != old_lead or len(session) != 1 or len(old_session) != 1:
            return None
        columns = []
        for index, name in enumerate(names):
            before = old_session[0] if name in session else theirs[keys.sources[ours.index(name)]]
            column = fitted(was.value, old_names.index(before), family.value.types[index])
            if column is None:
                return None
            columns.append(column)
        return columns


def _rest(key: Struct, path: tuple[int, ...], columns: int) -> tuple[SparkType, ...]:
    """Types in a key that do not belong to the grouping key."""
    if not path:
        return key.types[columns:]
    inner = key.types[path[0]]
    assert isinstance(inner, Struct)
    return (*key.types[: path[0]], *_rest(inner, path[1:], columns), *key.types[path[0] + 1 :])


def _merges(how: str, kind: SparkType) -> bool:
    """True if Arrow merges buffers of a type as Spark does: it orders NaN otherwise, and no structs."""
    if how in ("min", "max"):
        return not pa.types.is_floating(kind.arrow) and not pa.types.is_nested(kind.arrow)
    return True


def _merged(store: StoreSchema) -> str:
    if store.name in DEDUPLICATIONS:
        return "seen with any value of it counts as seen"
    return "its states are merged as Spark merges them"


def _part(kind: Struct, start: int) -> Struct:
    return Struct(kind.names[start:], kind.types[start:])


def _shifted(column: Column, by: int) -> Column:
    if column.source is None:
        return column
    return Column(column.source + by, column.value, column.is_widened, column.fields)
