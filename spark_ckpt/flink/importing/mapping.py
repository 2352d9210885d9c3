"""Which state of Flink goes to which state of the query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark_ckpt.flink.importing.errors import FlinkImportRefusedError, FlinkStateNotMappedError
from spark_ckpt.flink.tables.catalog import FlinkCatalog, FlinkState
from spark_ckpt.state_writing.targets import Target, TargetKind

ACCUMULATORS = "accState"
"""State of an aggregation in Flink SQL (`GroupAggFunction`)."""

_TIMERS = {
    "_timer_state/event_user-timers": TargetKind.EVENT_TIMERS,
    "_timer_state/processing_user-timers": TargetKind.PROCESSING_TIMERS,
}
"""Timers of process functions (`InternalTimeServiceManagerImpl`, `KeyedProcessOperator`)."""

_KINDS = {
    "VALUE": (TargetKind.VALUE, TargetKind.AGGREGATE),
    "REDUCING": (TargetKind.VALUE,),
    "AGGREGATING": (TargetKind.VALUE,),
    "LIST": (TargetKind.LIST,),
    "MAP": (TargetKind.MAP,),
}


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A state of Flink and its target in the query."""

    state: FlinkState
    target: Target


@dataclass(frozen=True, slots=True, eq=False)
class StateMapping:
    """What an import moves.

    Args:
        pairs: the states to import.
        ignored: states that the user leaves behind.
        open: states without a target. They may stay behind if they have no rows.
        empty: targets that no state goes to.
    """

    pairs: tuple[Pair, ...]
    ignored: tuple[FlinkState, ...]
    open: tuple[tuple[FlinkState, FlinkStateNotMappedError], ...]
    empty: tuple[Target, ...]


def title_of(catalog: FlinkCatalog, state: FlinkState) -> str:
    """Name of a state with its operator: the operator's uid if it is known, else its id."""
    return f"{_operator_names(catalog, state)[-1]}/{state.name}"


def _operator_names(catalog: FlinkCatalog, state: FlinkState) -> list[str]:
    """Id, name and uid of the operator of a state; the last two if they are known."""
    operator = next(each for each in catalog.metadata.operator_states if each.operator_id == state.operator_id)
    return [state.operator_id.hex(), *(name for name in (operator.name, operator.uid) if name)]


def map_states(
    catalog: FlinkCatalog,
    targets: Sequence[Target],
    chosen: Mapping[str, str],
    ignored: Collection[str],
) -> StateMapping:
    """Finds the target of each state.

    A state goes to the variable that the user chooses, else to the only one of its name and kind. Timers go to the
    timers of the same time, accumulators of an SQL aggregation to the aggregation, if the query has only one.

    Args:
        catalog: state of Flink.
        targets: targets of the query.
        chosen: states and their variables, each with or without its operator (`my-uid/counts`, `0/counts`).
        ignored: states that are not imported, named likewise.

    Raises:
        FlinkStateNotMappedError: a name of `chosen` or `ignored` is unknown or ambiguous, the state and its variable
            are of different kinds, or nothing can be imported into the variable.
        FlinkImportRefusedError: two states have the same target.
    """
    states = catalog.states()
    ignored_states = {_state(catalog, states, name) for name in ignored}
    explicit = {_state(catalog, states, name): _target(targets, name, variable) for name, variable in chosen.items()}
    pairs, without = [], []
    for state in states:
        if state in ignored_states:
            continue
        if state in explicit:
            pairs.append(_checked(catalog, state, explicit[state]))
            continue
        matches = list(_matches(state, targets))
        if len(matches) == 1:
            pairs.append(_checked(catalog, state, matches[0]))
            continue
        reason = "several state variables could take it" if matches else "no state variable of its name and kind"
        available = [target.title for target in matches or _of_kind(state, targets)]
        without.append((state, FlinkStateNotMappedError(title_of(catalog, state), reason, available)))
    _check_distinct(catalog, pairs)
    titles = {pair.target.title for pair in pairs}
    empty = tuple(target for target in targets if target.title not in titles)
    return StateMapping(
        tuple(pairs), tuple(state for state in states if state in ignored_states), tuple(without), empty
    )


def _matches(state: FlinkState, targets: Sequence[Target]) -> Iterator[Target]:
    """Targets that a state goes to by its name or kind alone."""
    for target in _targets_of_kind(state, targets):
        if target.kind.is_timers:
            yield target
        elif target.kind is TargetKind.AGGREGATE:
            if state.name == ACCUMULATORS:
                yield target
        elif target.name == state.name:
            yield target


def _targets_of_kind(state: FlinkState, targets: Sequence[Target]) -> Iterator[Target]:
    timers = _TIMERS.get(state.name) if state.kind == "PRIORITY_QUEUE" else None
    kinds = _KINDS.get(state.kind, ()) if timers is None else (timers,)
    return (target for target in targets if target.kind in kinds)


def _of_kind(state: FlinkState, targets: Sequence[Target]) -> Sequence[Target]:
    return tuple(_targets_of_kind(state, targets))


def _checked(catalog: FlinkCatalog, state: FlinkState, target: Target) -> Pair:
    matches = [each.title for each in _of_kind(state, [target])]
    if not matches:
        reason = f"a state of kind {state.kind} cannot become {target.title}, of kind {target.kind.value}"
        raise FlinkStateNotMappedError(title_of(catalog, state), reason, [])
    if target.problem is not None:
        reason = f"nothing can be imported into {target.title}: {target.problem}"
        raise FlinkStateNotMappedError(title_of(catalog, state), reason, [])
    if "namespace" in state.columns.schema.names:
        reason = "it has a namespace, such as the window of a window operator, which state of a query lacks"
        raise FlinkStateNotMappedError(title_of(catalog, state), reason, [])
    if "key" not in state.columns.schema.names:
        reason = "its rows cannot be separated, since they have parts of unknown classes"
        raise FlinkStateNotMappedError(title_of(catalog, state), reason, [])
    return Pair(state, target)


def _state(catalog: FlinkCatalog, states: Sequence[FlinkState], name: str) -> FlinkState:
    matches = [
        state
        for state in states
        if name in (state.name, *(f"{operator}/{state.name}" for operator in _operator_names(catalog, state)))
    ]
    if len(matches) == 1:
        return matches[0]
    reason = "several operators have a state of this name: name the operator" if matches else "there is no such state"
    raise FlinkStateNotMappedError(name, reason, [title_of(catalog, state) for state in states])


def _target(targets: Sequence[Target], state: str, name: str) -> Target:
    matches = [target for target in targets if name in (target.name, target.title, target.family.name)]
    if len(matches) == 1:
        return matches[0]
    reason = f"several operators have '{name}': name the operator" if matches else f"the query has no '{name}'"
    raise FlinkStateNotMappedError(state, reason, [target.title for target in targets])


def _check_distinct(catalog: FlinkCatalog, pairs: Sequence[Pair]) -> None:
    by_title: dict[str, Pair] = {}
    for pair in pairs:
        other = by_title.setdefault(pair.target.title, pair)
        if other is not pair:
            names = " and ".join(title_of(catalog, each.state) for each in (other, pair))
            reason = f"{names} would both become {pair.target.title}: choose another variable with --state, or "
            raise FlinkImportRefusedError(catalog.location, f"{reason}ignore one of them with --ignore")
