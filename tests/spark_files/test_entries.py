"""Round trip of the entries in Spark's own files, without loss."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.spark_files.entries import SHUFFLE_PARTITIONS, CommitEntry, OffsetEntry, query_id_of
from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata

PATH = "offsets/3"

# As written by Spark 4.2.
OFFSETS_1 = (
    b'v1\n{"batchWatermarkMs":1358823600000,"batchTimestampMs":1795284016453,'
    b'"conf":{"spark.sql.shuffle.partitions":"4","spark.sql.streaming.join.stateFormatVersion":"2"}}\n'
    b'{"logOffset":1}\n-\n{"orders":{"0":17}}'
)
OFFSETS_3 = OFFSETS_1.replace(
    b'Version":"2"', b'Version":"2","spark.sql.streaming.stateStore.rowChecksum.enabled":"false"'
)
OFFSETS_2 = (
    b'v2\n{"batchWatermarkMs":0,"batchTimestampMs":7,"conf":{"spark.sql.shuffle.partitions":"4"},'
    b'"sourceMetadataInfo":{},"controlBatchInfo":null}\norders:{"a":{"0":1}}\nrates:-'
)
COMMIT_2 = b'v2\n{"nextBatchWatermarkMs":5,"stateUniqueIds":{"0":[["a","b"],["c","d"]],"1":[["e"]]}}'
OPERATOR_2 = (
    b'v2\n{"operatorInfo":{"operatorId":1,"operatorName":"dedupe"},"stateStoreInfo":[{"storeName":"default",'
    b'"numColsPrefixKey":0,"numPartitions":4,"stateSchemaFilePaths":["x"]}],"operatorPropertiesJson":"{}"}'
)

texts = st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=20)
offsets = st.one_of(st.none(), st.dictionaries(texts, st.integers(), max_size=3).map(json.dumps))
settings = st.dictionaries(texts, texts, max_size=4)
metadata = st.fixed_dictionaries({"batchWatermarkMs": st.integers(), "conf": settings})


@pytest.mark.parametrize("data", [OFFSETS_1, OFFSETS_2])
def test_offsets_are_written_as_spark_writes_them(data: bytes) -> None:
    assert OffsetEntry.decode(data, PATH).encode() == data


@given(metadata=st.none() | metadata, sources=st.lists(offsets, min_size=1, max_size=4))
def test_offsets_by_position_come_back(metadata: dict[str, object] | None, sources: list[str | None]) -> None:
    entry = OffsetEntry(1, metadata, {str(i): offset for i, offset in enumerate(sources)})
    assert OffsetEntry.decode(entry.encode(), PATH) == entry


@given(
    metadata=metadata,
    sources=st.dictionaries(texts.filter(lambda name: ":" not in name), offsets, max_size=4),
)
def test_offsets_by_name_come_back(metadata: dict[str, object], sources: dict[str, str | None]) -> None:
    entry = OffsetEntry(2, metadata, sources)
    assert OffsetEntry.decode(entry.encode(), PATH) == entry


@pytest.mark.parametrize("data", [OFFSETS_1, OFFSETS_2])
def test_another_number_of_partitions_changes_nothing_else(data: bytes) -> None:
    entry = OffsetEntry.decode(data, PATH)
    assert entry.shuffle_partitions == 4
    changed = entry.with_shuffle_partitions(7)
    assert changed.shuffle_partitions == 7
    assert changed.encode() == data.replace(b'partitions":"4"', b'partitions":"7"')


def test_partitions_that_are_not_said() -> None:
    entry = OffsetEntry(2, {"conf": {}}, {})
    assert entry.shuffle_partitions is None
    assert entry.with_shuffle_partitions(3).conf == {SHUFFLE_PARTITIONS: "3"}
    assert OffsetEntry.decode(b"v1\n\n{}", PATH).shuffle_partitions is None


def test_sources_are_told_from_their_offsets() -> None:
    assert OffsetEntry.decode(OFFSETS_1, PATH).offsets == {
        "0": '{"logOffset":1}',
        "1": None,
        "2": '{"orders":{"0":17}}',
    }
    assert OffsetEntry.decode(OFFSETS_2, PATH).offsets == {"orders": '{"a":{"0":1}}', "rates": None}


def changed(data: bytes, before: str, after: str) -> OffsetEntry:
    """An entry in which one text is another."""
    assert before.encode() in data
    return OffsetEntry.decode(data.replace(before.encode(), after.encode()), PATH)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("batchTimestampMs", "batchTimestampMr"),
        ("1795284016453", "1795284016452"),
        ("stateStore.rowChecksum", "stateStore.rowChecksul"),
    ],
)
def test_a_start_does_the_same(before: str, after: str) -> None:
    """It repeats no batch, and gives settings that an entry lacks their defaults."""
    right = OffsetEntry.decode(OFFSETS_3, PATH)
    assert changed(OFFSETS_3, before, after).acts_as(right, is_repeated=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1358823600000", "1358823600001"),
        ('partitions":"4"', 'partitions":"5"'),
        ("shuffle.partitions", "shuffle.partitionr"),
        ("join.stateFormatVersion", "join.stateFormatVersioo"),  # the default is another than the recorded value
        ('"logOffset":1', '"logOffset":0'),
        ("-", '{"logOffset":2}'),
    ],
)
@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_start_does_something_else(before: str, after: str, is_repeated: bool) -> None:
    right = OffsetEntry.decode(OFFSETS_3, PATH)
    assert right.acts_as(right, is_repeated=is_repeated)
    assert not changed(OFFSETS_3, before, after).acts_as(right, is_repeated=is_repeated)


def test_a_repeated_batch_has_its_time() -> None:
    right = OffsetEntry.decode(OFFSETS_3, PATH)
    assert not changed(OFFSETS_3, "1795284016453", "1795284016452").acts_as(right, is_repeated=True)


def test_names_of_sources_matter() -> None:
    right = OffsetEntry.decode(OFFSETS_2, PATH)
    assert not changed(OFFSETS_2, "rates:-", "ratet:-").acts_as(right, is_repeated=False)


def test_ids_of_states() -> None:
    entry = CommitEntry.decode(COMMIT_2, PATH)
    assert entry.encode() == COMMIT_2
    ids = entry.state_ids
    assert ids == {0: [["a", "b"], ["c", "d"]], 1: [["e"]]}
    changed = entry.with_state_ids({**ids, 1: [["f"], ["g"]]})
    assert changed.encode() == COMMIT_2.replace(b'[["e"]]', b'[["f"],["g"]]')


@pytest.mark.parametrize("data", [b"v1\n{}", b"v1", b'v1\n{"nextBatchWatermarkMs":12}'])
def test_a_commit_without_ids(data: bytes) -> None:
    assert CommitEntry.decode(data, PATH).state_ids is None


def test_operator() -> None:
    operator = OperatorMetadata.decode(OPERATOR_2, PATH)
    assert (operator.operator_id, operator.name, operator.partitions) == (1, "dedupe", {"default": 4})
    assert operator.encode() == OPERATOR_2
    assert operator.with_partitions(9).encode() == OPERATOR_2.replace(b'numPartitions":4', b'numPartitions":9')


def test_query_id() -> None:
    assert query_id_of(b'{"id":"2b8b"}', "metadata") == "2b8b"
    with pytest.raises(SparkLogFormatError, match="names no query"):
        query_id_of(b"{}", "metadata")


@pytest.mark.parametrize(
    ("decode", "data", "reason"),
    [
        (OffsetEntry.decode, b"", "instead of a version"),
        (OffsetEntry.decode, b"1\n{}", "instead of a version"),
        (OffsetEntry.decode, b"v1", "ends before"),
        (OffsetEntry.decode, b"v3\n{}", "version 3"),
        (OffsetEntry.decode, b"v1\n{", "malformed JSON"),
        (OffsetEntry.decode, b"v1\n[]", "not a JSON object"),
        (OffsetEntry.decode, b"v2\n{}\nno source", "names no source"),
        (OffsetEntry.decode, b"v1\n\xff", "not text"),
        (CommitEntry.decode, b"v4\n{}", "version 4"),
        (CommitEntry.decode, b'v2\n{"stateUniqueIds":{"x":[]}}', "state ids"),
        (CommitEntry.decode, b'v2\n{"stateUniqueIds":[1]}', "state ids"),
        (OperatorMetadata.decode, b"v1\n{}", "the operator"),
        (OperatorMetadata.decode, OPERATOR_2.replace(b'"numPartitions":4,', b""), "the operator"),
    ],
)
def test_what_is_damaged_is_named(decode, data: bytes, reason: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    with pytest.raises(SparkLogFormatError, match=reason) as caught:
        decode(data, PATH)
    assert caught.value.path == PATH
    assert PATH in str(caught.value)
