"""The metadata of a checkpoint as `inspect` shows it, with operator names from our master state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rich.text import Text
from rich.tree import Tree

from spark_ckpt.checkpoint.batch import SPARK_BATCH, SparkBatch, StoreState
from spark_ckpt.checkpoint.compose import operator_id_of, spark_batch_of
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.checkpoint.sources import SourceState, sources_of
from spark_ckpt.cli.end_offsets import EndOffsets
from spark_ckpt.cli.formatting import (
    Branch,
    kind_of,
    plain,
    readable_by,
    shortened,
    summarise,
)
from spark_ckpt.cli.results.described import describe_record, described
from spark_ckpt.cli.results.metadata_json import (
    JsonObject,
    base64_text,
    decoded_payload,
    describe_required_release,
    object_json,
    value_json,
)
from spark_ckpt.cli.results.sources import position_line, source_json
from spark_ckpt.errors import CheckpointError
from spark_ckpt.figures import count, human_size, iso_time
from spark_ckpt.format.segment_flags import COMPRESSED
from spark_ckpt.format.segment_ref import NO_BLOCKS, SegmentRef
from spark_ckpt.location.find import FoundCheckpoint
from spark_ckpt.metadata import MasterState, OperatorState, OperatorSubtaskState
from spark_ckpt.metadata.properties import CheckpointProperties, decode
from spark_ckpt.redaction import redacted


@dataclass(frozen=True, slots=True)
class Inspection:
    """The metadata of a checkpoint, with details from our master state.

    Args:
        found: the checkpoint.
        properties: Flink's checkpoint properties, if the file has them.
        batch: its micro-batch, if the checkpoint is one of ours.
        stores: our stores, by operator id.
        sources: the sources of its query, by operator id.
        ends: end offsets of its Kafka partitions; None unless requested.
    """

    found: FoundCheckpoint
    properties: CheckpointProperties | None = None
    batch: SparkBatch | None = None
    stores: Mapping[bytes, StoreState] = field(default_factory=dict)
    sources: Mapping[bytes, SourceState] = field(default_factory=dict)
    ends: EndOffsets | None = None

    @classmethod
    def of(cls, found: FoundCheckpoint) -> Inspection:
        """The inspection of a checkpoint."""
        properties = decode(found.metadata.properties)
        batch = _batch(found)
        if batch is None:
            return cls(found, properties)
        stores = {operator_id_of(batch.query_id, f"{s.operator_id}/{s.store}"): s for s in batch.stores}
        sources = {source.operator_id: source for source in sources_of(found.metadata, batch)}
        return cls(found, properties, batch, stores, sources)

    def to_json(self) -> JsonObject:
        """Everything in the metadata.

        Objects of the model have their class as `type`. Bytes are base64; a JSON payload of a master state stays JSON.
        Subtask states are a list, each with its `index`.
        """
        metadata = self.found.metadata
        return described(
            "inspect",
            self.found,
            metadata,
            record=describe_record(self.found.record) if self.found.record else None,
            required_release=describe_required_release(metadata),
            properties=value_json(self.properties),
            master_states=[_master_state(state) for state in metadata.master_states],
            operator_states=[_operator(self, operator) for operator in metadata.operator_states],
        )

    def name_of(self, operator: OperatorState) -> str | None:
        """A readable name; None for Flink's operators, unless the metadata has their names, as since version 5."""
        if (store := self.stores.get(operator.operator_id)) is not None:
            return f"{store.name} {store.operator_id}/{store.store}"
        if (source := self.sources.get(operator.operator_id)) is not None:
            return source.title
        return operator.name or operator.uid

    def state_size_of(self, operator: OperatorState) -> int:
        """Bytes of an operator's state. Our segments share files; their handles would count them repeatedly."""
        store = self.stores.get(operator.operator_id)
        return operator.state_size if store is None else int(store.segments.sizes.sum())

    def segments_of(self, operator: OperatorState, subtask: int) -> list[SegmentRef]:
        """The chain of a subtask of one of our stores, oldest first; empty for other operators."""
        store = self.stores.get(operator.operator_id)
        if store is None or subtask >= store.parallelism:
            return []
        return segments_of_table(store.segments, subtask)


def _batch(found: FoundCheckpoint) -> SparkBatch | None:
    try:
        return spark_batch_of(found.metadata)
    except CheckpointError:
        # Another program uses the same name: show its payload as is.
        return None


def _master_state(state: MasterState) -> JsonObject:
    decoded = decoded_payload(state.payload)
    payload: JsonObject = {"payload_base64": base64_text(state.payload)} if decoded is None else {"payload": decoded}
    return described("master_state", state, size=len(state.payload), **payload)


def _operator(inspection: Inspection, operator: OperatorState) -> JsonObject:
    store = inspection.stores.get(operator.operator_id)
    source = inspection.sources.get(operator.operator_id)
    return described(
        "operator_state",
        operator,
        type=type(operator).__name__,
        operator_id=operator.operator_id.hex(),
        name=inspection.name_of(operator),
        store=None if store is None else described("store", store, rows=sum(store.rows)),
        source=None if source is None else source_json(source, inspection.ends),
        state_size=inspection.state_size_of(operator),
        coordinator_state=value_json(operator.coordinator_state),
        subtask_states=[
            _subtask(inspection, operator, index, subtask) for index, subtask in operator.subtask_states.items()
        ],
    )


def segments_of_table(table: SegmentTable, subtask: int) -> list[SegmentRef]:
    """The chain of a subtask, oldest first; `_metadata` has its handles, with blocks and files, elsewhere."""
    first = int(table.counts[:subtask].sum())
    chain = slice(first, first + int(table.counts[subtask]))
    columns = (table.first_versions, table.versions, table.sizes, table.flags)
    return [
        SegmentRef(first_version, version, NO_BLOCKS, size, flags=flags)
        for first_version, version, size, flags in zip(*(column[chain].tolist() for column in columns), strict=True)
    ]


def segment_text(segment: SegmentRef) -> str:
    """Kind, versions and size of a segment."""
    first = f"{segment.first_version}-" if segment.is_merged else ""
    compressed = " compressed" if segment.has(COMPRESSED) else ""
    kind = "base" if segment.is_base else "delta"
    return f"{kind} v{first}{segment.version} {human_size(segment.size)}{compressed}"


def segment_json(segment: SegmentRef) -> JsonObject:
    """A segment as JSON."""
    optional: JsonObject = {"first_version": segment.first_version} if segment.is_merged else {}
    if segment.has(COMPRESSED):
        optional["compressed"] = True
    return described("segment", segment, kind="base" if segment.is_base else "delta", **optional)


def _subtask(inspection: Inspection, operator: OperatorState, index: int, subtask: OperatorSubtaskState) -> JsonObject:
    fields: JsonObject = {"index": index, **object_json(subtask)}
    store = inspection.stores.get(operator.operator_id)
    if store is not None and index < store.parallelism:
        segments = inspection.segments_of(operator, index)
        fields |= {
            "rows": store.rows[index],
            "ckpt_id": store.state_ids[index],
            "segments": [segment_json(segment) for segment in segments],
        }
    return fields


def inspection_tree(inspection: Inspection) -> Tree:
    """The header, the master states, and the operators with their subtasks and handles."""
    tree = Tree(Text(_title(inspection), style="bold"), highlight=False)
    for line in _header(inspection):
        tree.add(Text(line))
    if states := inspection.found.metadata.master_states:
        branch = tree.add(Text(count(len(states), "master state")))
        for state in states:
            _add(branch, _master_state_branch(state, inspection))
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


def _master_state_branch(state: MasterState, inspection: Inspection) -> Branch:
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
        _add(branch, _subtask_branch(inspection, operator, index, subtask))


def _subtask_branch(
    inspection: Inspection, operator: OperatorState, index: int, subtask: OperatorSubtaskState
) -> Branch:
    if subtask.is_finished:
        return f"subtask {index}, finished", []
    line = f"subtask {index}, {human_size(subtask.state_size)}"
    below: list[Branch] = []
    store = inspection.stores.get(operator.operator_id)
    if store is not None and index < store.parallelism:
        line = f"subtask {index}, {store.rows[index]:,} rows, state id {store.state_ids[index]}"
        segments = inspection.segments_of(operator, index)
        chain = [segment_text(segment) for segment in segments]
        below.append((f"chain: {', '.join(chain) or 'empty'}", []))
    if (source := inspection.sources.get(operator.operator_id)) is not None:
        below += [(position_line(position, inspection.ends), []) for position in source.positions]
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
