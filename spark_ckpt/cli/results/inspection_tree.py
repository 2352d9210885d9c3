"""The metadata of a checkpoint as a tree."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.text import Text
from rich.tree import Tree

from spark_ckpt.checkpoint.batch import SPARK_BATCH
from spark_ckpt.cli.formatting import (
    Branch,
    count,
    human_size,
    iso_time,
    kind_of,
    plain,
    readable_by,
    shortened,
    summarise,
)
from spark_ckpt.cli.results.inspection import Inspection
from spark_ckpt.cli.results.metadata_json import decoded_payload
from spark_ckpt.metadata import MasterState, OperatorState, OperatorSubtaskState
from spark_ckpt.redaction import redacted


def inspection_tree(inspection: Inspection) -> Tree:
    """The header, the master states, and the operators with their subtasks and handles."""
    tree = Tree(Text(_title(inspection), style="bold"), highlight=False)
    for line in _header(inspection):
        tree.add(Text(line))
    if states := inspection.found.metadata.master_states:
        branch = tree.add(Text(count(len(states), "master state")))
        for state in states:
            _add(branch, _master_state(state, inspection))
    if operators := inspection.found.metadata.operator_states:
        branch = tree.add(Text(count(len(operators), "operator")))
        for operator in operators:
            _add_operator(branch, inspection, operator)
    return tree


def _title(inspection: Inspection) -> str:
    metadata = inspection.found.metadata
    return (
        f"checkpoint {metadata.checkpoint_id}, metadata version {metadata.version}, "
        f"{human_size(inspection.found.size)}, {plain(redacted(inspection.found.path))}"
    )


def _header(inspection: Inspection) -> Iterator[str]:
    if (record := inspection.found.record) is not None:
        yield (
            f"completed {iso_time(record.timestamp_ms)} in {record.duration_ms:,} ms, generation {record.generation}, "
            f"by {plain(str(record.owner))}"
        )
        yield f"state {human_size(record.state_bytes)}, {record.rows:,} rows; {human_size(record.new_bytes)} new"
    if (batch := inspection.batch) is not None:
        name = f" '{plain(batch.query_name)}'" if batch.query_name else ""
        yield f"batch {batch.batch_id}, state version {batch.version}, Spark {plain(batch.spark_version)}"
        yield f"query {plain(batch.query_id)}{name}, run {plain(batch.run_id)}"
        yield f"{batch.max_parallelism:,} key groups, key-group factors {list(batch.key_group_factors)}"
    if (properties := inspection.properties) is not None:
        yield kind_of(properties)
    yield readable_by(inspection.found.metadata)


def _master_state(state: MasterState, inspection: Inspection) -> Branch:
    line = f"{plain(state.name)}, version {state.version}, {human_size(len(state.payload))}"
    if state.name == SPARK_BATCH and inspection.batch is not None:
        # The header and the subtasks show its numbers.
        stores = [
            f"{store.name} {store.operator_id}/{store.store}: {sum(store.rows):,} rows"
            for store in inspection.batch.stores
        ]
        return line, [(plain(text), []) for text in stores]
    payload = decoded_payload(state.payload)
    if isinstance(payload, dict):
        return line, [_json_field(name, value) for name, value in payload.items()]
    if isinstance(payload, list):
        return line, [(plain(shortened(_json_text(item))), []) for item in payload]
    text = state.payload.hex() if payload is None else _json_text(payload)
    return line, [(plain(shortened(part)), []) for part in text.splitlines()]


def _json_field(name: str, value: object) -> Branch:
    if isinstance(value, dict) and value:
        return plain(name), [_json_field(inner, item) for inner, item in value.items()]
    return plain(shortened(f"{name}: {_json_text(value)}")), []


def _json_text(value: object) -> str:
    """The JSON of a value; a string without quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _add_operator(parent: Tree, inspection: Inspection, operator: OperatorState) -> None:
    name = inspection.name_of(operator)
    line = Text(plain(name) if name else operator.operator_id.hex(), style="bold")
    details = [
        *([f"id {operator.operator_id.hex()}"] if name else []),
        f"parallelism {operator.parallelism:,} of {operator.max_parallelism:,}",
        "fully finished" if operator.is_fully_finished else human_size(inspection.state_size_of(operator)),
    ]
    if (store := inspection.stores.get(operator.operator_id)) is not None:
        details.append(f"{sum(store.rows):,} rows")
    branch = parent.add(line.append(f", {', '.join(details)}", style="not bold"))
    if operator.coordinator_state is not None:
        branch.add(Text(f"coordinator: {summarise(operator.coordinator_state)[0]}"))
    for index, subtask in sorted(operator.subtask_states.items()):
        _add(branch, _subtask(inspection, operator, index, subtask))


def _subtask(inspection: Inspection, operator: OperatorState, index: int, subtask: OperatorSubtaskState) -> Branch:
    if subtask.is_finished:
        return f"subtask {index}, finished", []
    line = f"subtask {index}, {human_size(subtask.state_size)}"
    below: list[Branch] = []
    store = inspection.stores.get(operator.operator_id)
    if store is not None and index < store.parallelism:
        line = f"subtask {index}, {store.rows[index]:,} rows, state id {store.state_ids[index]}"
        segments = inspection.segments_of(operator, index)
        chain = [f"{'base' if s.is_base else 'delta'} v{s.version} {human_size(s.size)}" for s in segments]
        below.append((f"chain: {', '.join(chain) or 'empty'}", []))
    kinds = (
        ("managed operator state", subtask.managed_operator_state),
        ("raw operator state", subtask.raw_operator_state),
        ("managed keyed state", subtask.managed_keyed_state),
        ("raw keyed state", subtask.raw_keyed_state),
    )
    for kind, handle in kinds:
        if handle is not None:
            text, parts = summarise(handle)
            below.append((f"{kind}: {text}", parts))
    channels = (
        *(("input", handle) for handle in subtask.input_channel_state),
        *(("result", handle) for handle in subtask.result_subpartition_state),
    )
    below += [(f"{kind} {summarise(channel)[0]}", []) for kind, channel in channels]
    return line, below


def _add(parent: Tree, branch: Branch) -> None:
    text, below = branch
    added = parent.add(Text(text))
    for part in below:
        _add(added, part)
