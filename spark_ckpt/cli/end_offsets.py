"""End offsets of Kafka partitions, asked of a broker, and the lag of positions behind them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.spark_files.source_positions import KafkaPosition

TIMEOUT_MS = 10_000
"""Longest wait for the first broker that answers, and for each answer, in milliseconds."""


class KafkaClientNotFoundError(SparkCkptError, ImportError):
    """The lag was requested, and kafka-python is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "a Kafka broker can be asked only with kafka-python, which is not installed: "
            "pip install 'spark-ckpt[kafka]'"
        )


class KafkaUnavailableError(SparkCkptError, OSError):
    """A Kafka broker did not answer.

    Attributes:
        servers: the addresses of the brokers, as given by the user.
    """

    def __init__(self, servers: str, reason: object) -> None:
        super().__init__(
            f"no offsets from the Kafka broker at {servers}: {reason}. Check the address, and that the broker "
            "accepts unencrypted connections without authentication"
        )
        self.servers = servers

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """End offsets of partitions at one moment.

    Args:
        offsets: offset of the next record to be written, by topic and partition; partitions that do not exist are
            absent.
    """

    offsets: Mapping[tuple[str, int], int]

    def of(self, position: KafkaPosition) -> int | None:
        """End offset of the position's partition; None if the partition does not exist."""
        return self.offsets.get((position.topic, position.partition))

    def lag_of(self, position: KafkaPosition) -> int | None:
        """Number of offsets between the position and the end; None if the partition does not exist.

        Negative if the partition ends before the position, as in a topic that was deleted and created again.
        """
        end = self.of(position)
        return None if end is None else end - position.offset


def topics_of(sources: Iterable[SourceState]) -> list[str]:
    """Names of the Kafka topics in the positions of sources, ascending."""
    positions = (position for source in sources for position in source.positions)
    return sorted({position.topic for position in positions if isinstance(position, KafkaPosition)})


EARLIEST = -2
"""Kafka's `ListOffsetsRequest.EARLIEST_TIMESTAMP`."""

LATEST = -1
"""Kafka's `ListOffsetsRequest.LATEST_TIMESTAMP`."""


def read_end_offsets(servers: str, topics: Iterable[str]) -> EndOffsets:
    """Ask a broker for the end offsets of all partitions of topics; see `read_offsets_at`."""
    return EndOffsets(read_offsets_at(servers, topics, LATEST))


def read_offsets_at(servers: str, topics: Iterable[str], at_ms: int) -> dict[tuple[str, int], int]:
    """Ask a broker for the offsets of all partitions of topics at a time.

    Args:
        servers: addresses of brokers, `HOST:PORT`, separated by commas.
        topics: names of the topics; those that do not exist are ignored.
        at_ms: the time in milliseconds since 1970 UTC, `EARLIEST` or `LATEST`. A partition without a record since then
            has its end.

    Returns:
        Offset of the first record of that time or later, by topic and partition.

    Raises:
        KafkaClientNotFoundError: kafka-python is not installed.
        KafkaUnavailableError: no broker answers, or the one that does refuses the request.
    """
    try:
        from kafka import KafkaAdminClient, TopicPartition
        from kafka.errors import KafkaError
    except ImportError:
        raise KafkaClientNotFoundError from None
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it logs each attempt to connect as an error
    names = list(topics)
    if not names:
        return {}
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=servers.split(","), bootstrap_timeout_ms=TIMEOUT_MS, request_timeout_ms=TIMEOUT_MS
        )
        try:
            partitions = [TopicPartition(*each) for each in _partitions(admin.describe_topics(names))]
            found = admin.list_partition_offsets(dict.fromkeys(partitions, at_ms)) if partitions else {}
            if late := [each for each, at in found.items() if at.offset < 0]:
                found |= admin.list_partition_offsets(dict.fromkeys(late, LATEST))
        finally:
            admin.close()
    except (KafkaError, OSError, ValueError) as e:
        raise KafkaUnavailableError(servers, e) from e
    return {(each.topic, each.partition): at.offset for each, at in found.items()}


def _partitions(descriptions: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Topic and number of each partition of the topics that exist."""
    return [
        (topic["name"], partition["partition_index"])
        for topic in descriptions
        if topic["error_code"] == 0
        for partition in topic["partitions"]
    ]
