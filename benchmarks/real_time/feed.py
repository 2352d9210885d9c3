"""Topics of a run: rows go in at a steady rate, and the records of the output come back."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.real_time.latency import Output, Sent

_POLL_MS = 200


def create(servers: str, topic: str, partitions: int) -> None:
    """Creates a topic."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics({topic: {"num_partitions": partitions}}, wait_for_metadata=True)
    admin.close()


class Feed:
    """The input topic. Rows of one key go to one partition, so they keep their order.

    Args:
        servers: address of the broker.
        topic: name of the topic.
        partitions: number of its partitions.
        keys: number of keys; the rows go to each in turn.
        repeat: every `repeat`-th row is sent twice; 0 for none.
    """

    def __init__(self, servers: str, topic: str, partitions: int, keys: int, repeat: int = 0) -> None:
        self.sent: list[Sent] = []
        self._topic, self._partitions, self._keys, self._repeat = topic, partitions, keys, repeat
        self._producer = KafkaProducer(bootstrap_servers=servers, acks=1, linger_ms=0)

    def send(self, count: int, rate: float | None = None) -> None:
        """Sends the next rows, and waits until the broker has them.

        Args:
            count: number of rows.
            rate: rows per second; None for all at once. A row that is late is sent at once.
        """
        began, futures = time.monotonic(), []
        for place in range(count):
            if rate is not None and (early := began + place / rate - time.monotonic()) > 0:
                time.sleep(early)
            number = len(self.sent)
            row = Sent(number % self._keys, number, _now())
            self.sent.append(row)
            futures.append(self._send(row))
            if self._repeat and number % self._repeat == 0:
                futures.append(self._send(Sent(row.key, number, _now())))
        self._producer.flush()
        for future in futures:
            future.get()  # raises the error of a row that the broker does not have

    def close(self) -> None:
        """Ends the producer."""
        self._producer.close()

    def _send(self, row: Sent) -> Any:  # noqa: ANN401 - kafka-python has no types
        value = msgspec.json.encode({"key": row.key, "number": row.number, "sent": row.sent})
        return self._producer.send(self._topic, value, partition=row.key % self._partitions)


class Results:
    """The output topic, which has one partition.

    Args:
        servers: address of the broker.
        topic: name of the topic.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self.outputs: list[Output] = []
        self._consumer = KafkaConsumer(bootstrap_servers=servers)
        self._partition = TopicPartition(topic, 0)
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning(self._partition)

    def poll(self) -> None:
        """Appends further records to `outputs`; waits up to 0.2 s for the first."""
        for records in self._consumer.poll(timeout_ms=_POLL_MS, max_records=10_000).values():
            for record in records:
                value = msgspec.json.decode(record.value)
                self.outputs.append(Output(value["key"], value["number"], value["rows"], record.timestamp))

    def drain(self) -> None:
        """Appends all further records that the broker has now."""
        end = self._consumer.end_offsets([self._partition])[self._partition]
        while self._consumer.position(self._partition) < end:
            self.poll()

    def close(self) -> None:
        """Ends the consumer."""
        self._consumer.close()


def _now() -> int:
    return time.time_ns() // 1_000_000
