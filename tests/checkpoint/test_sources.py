"""Sources in a `_metadata`: names and positions from operator state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.checkpoint.compose import operator_id_of, spark_batch_of
from spark_ckpt.checkpoint.encode import encode_metadata
from spark_ckpt.checkpoint.sources import SourceState, sources_of
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    CheckpointMetadata,
    DistributionMode,
    FileStateHandle,
    OperatorStateHandle,
    OperatorStreamStateHandle,
    OperatorSubtaskState,
    StateMetaInfo,
    loads,
)
from spark_ckpt.spark_files.source_positions import (
    FilePosition,
    KafkaPosition,
    UnknownPosition,
)
from tests.support.locations import KEY, OFFSETS, OWNER, chains, make_batch
from tests.support.meanings import meaning


def metadata_of(*sources: Source) -> CheckpointMetadata:
    """Metadata of a query with these sources."""
    batch = make_batch(3, sources)
    return loads(encode_metadata(7, batch, {KEY: chains(3)}, sources, OFFSETS, ()), "_metadata")


def states_of(metadata: CheckpointMetadata) -> Sequence[SourceState]:
    return sources_of(metadata, spark_batch_of(metadata))


def with_handle(handle: OperatorStateHandle | None) -> Sequence[SourceState]:
    """Sources of a checkpoint whose only source has this state."""
    metadata = metadata_of(Source("0", "17"))
    *stores, source = metadata.operator_states
    changed = replace(source, subtask_states={0: OperatorSubtaskState(handle)})
    return states_of(replace(metadata, operator_states=(*stores, changed)))


def test_each_source_has_its_positions() -> None:
    metadata = metadata_of(
        Source("0", '{"b":{"0":1},"a":{"10":2,"9":3}}'), Source("1", None), Source("files", '{"logOffset":4}')
    )
    kafka, late, files = states_of(metadata)
    assert (kafka.name, kafka.kind, late.name, late.kind, files.name, files.kind) == (
        *("0", "kafka"),
        *("1", None),
        *("files", "file"),
    )
    assert kafka.positions == (KafkaPosition("a", 9, 3), KafkaPosition("a", 10, 2), KafkaPosition("b", 0, 1))
    assert late.positions == ()
    assert files.positions == (FilePosition(4),)
    assert [source.operator_id for source in (kafka, late, files)] == [
        operator_id_of(OWNER.query_id, f"source/{index}") for index in range(3)
    ]


def titles(*sources: Source, **changes: Any) -> list[str]:
    metadata = metadata_of(*sources)
    return [source.title for source in sources_of(metadata, replace(spark_batch_of(metadata), **changes))]


def test_a_title_says_what_a_source_reads() -> None:
    kafka, file = Source("0", '{"b":{"0":1},"a":{"0":2}}'), Source("in", '{"logOffset":4}')
    known = meaning(sources=("kafka subscribe=a,b", "json path=s3a://key:pass@bucket/in")).encode()
    assert titles(kafka, file, meaning=known) == [
        "source 0 (kafka subscribe=a,b)",
        "source in (json path=s3a://***@bucket/in)",
    ]
    assert titles(kafka, file) == ["source 0 (kafka a, b)", "source in (file)"]
    assert titles(kafka, file, meaning=b"damaged") == titles(kafka, file)


def test_a_title_of_an_earlier_release_comes_from_the_offset() -> None:
    many = ",".join(f'"t{number}":{{"0":1}}' for number in range(5))
    delta = '{"sourceVersion":1,"reservoirId":"5b4c","reservoirVersion":3,"index":-1,"isStartingVersion":true}'
    sources = (Source("0", "{" + many + "}"), Source("1", delta), Source("2", "at"), Source("3", None))
    assert titles(*sources) == [
        "source 0 (kafka t0, t1, t2 and 2 more)",
        "source 1 (delta table 5b4c)",
        "source 2",
        "source 3",
    ]


def test_a_query_without_sources() -> None:
    assert states_of(metadata_of()) == ()


def test_an_offset_that_is_no_json_comes_back_whole() -> None:
    (source,) = states_of(metadata_of(Source("0", "at näxt")))
    assert source.positions == (UnknownPosition("at näxt"),)


def test_state_that_spark_ckpt_does_not_write_has_no_positions() -> None:
    states = {"source-offsets": StateMetaInfo((0,), DistributionMode.SPLIT_DISTRIBUTE)}
    inline = ByteStreamStateHandle("x", b"17")
    for handle in (
        None,
        OperatorStreamStateHandle(states, FileStateHandle("/x", 2)),
        OperatorStreamStateHandle({}, inline),
        OperatorStreamStateHandle({"other": states["source-offsets"]}, inline),
    ):
        (source,) = with_handle(handle)
        assert (source.name, source.kind, source.positions) == ("0", None, ())


def test_bytes_that_are_no_text_do_not_fail() -> None:
    states = {"source-offsets": StateMetaInfo((0, 99), DistributionMode.SPLIT_DISTRIBUTE)}
    (source,) = with_handle(OperatorStreamStateHandle(states, ByteStreamStateHandle("x", b"\xff")))
    assert source.positions == (UnknownPosition("\ufffd"), UnknownPosition(""))
