"""Checkpoint locations as a query leaves them: the coordinator's files, and those of Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from spark_ckpt.coordinator.messages import Operator, Source, SubtaskKey
from spark_ckpt.storage import LocalStorage, Storage
from tests.coordinator.driving import Driver, Rows, faulty_environment, load

OPERATORS = (Operator(0, "stateStoreSave", ("default",), 4, 2), Operator(1, "symmetricHashJoin", ("left", "right"), 2))
SETTINGS = {"retained": "4", "inlineThreshold": "0"}


@dataclass
class Query:
    """A query whose driver is the tests' own, and which writes Spark's files as well.

    Args:
        storage: of the checkpoint location.
        settings: of the query.
        checkpoint_format: 2 names the states in the commit log.
        operators: of the query.
    """

    storage: Storage
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    checkpoint_format: int = 1
    operators: tuple[Operator, ...] = OPERATORS

    def __post_init__(self) -> None:
        self.driver = self._new_driver()
        if self.storage.exists("metadata"):
            self.driver.query_id = json.loads(self.storage.read("metadata"))["id"]
            return
        self.storage.write_atomic("metadata", json.dumps({"id": self.driver.query_id}).encode())
        self.storage.write_atomic("sources/0/0", b"v1\nfiles of batch 0")
        for operator in self.operators:
            self.storage.write_atomic(f"state/{operator.operator_id}/_metadata/metadata", self._metadata_of(operator))
            for partition in range(operator.parallelism):
                self.storage.write_atomic(f"state/{operator.operator_id}/{partition}/_metadata/schema", b"schema")

    def run(self, batches: range, *, commit_last: bool = True) -> None:
        """Runs batches, as Spark does: offsets, tasks, commit."""
        for batch in batches:
            self.start(batch)
            self.driver.batch(batch + 1, self._bases(batch))
            if commit_last or batch != batches[-1]:
                self.commit(batch)

    def start(self, batch: int) -> None:
        """Spark writes what the batch reads up to."""
        self.driver.sources = (Source("source", self._offset(batch)),)
        if not self.storage.exists(f"offsets/{batch}"):
            self.storage.write_atomic(f"offsets/{batch}", self._offsets(batch))

    def commit(self, batch: int) -> None:
        """Spark writes that the batch is done."""
        fields: dict[str, object] = {"nextBatchWatermarkMs": 0}
        if self.checkpoint_format == 2:
            fields["stateUniqueIds"] = {
                str(operator.operator_id): [
                    [self.driver.ids[SubtaskKey(operator.operator_id, store, partition)] for store in operator.stores]
                    for partition in range(operator.parallelism)
                ]
                for operator in self.operators
            }
        self.storage.write_atomic(f"commits/{batch}", f"v{self.checkpoint_format}\n{json.dumps(fields)}".encode())

    def restart(self) -> int:
        """A new run of the query, which begins as Spark does: with the batch after the last one that is committed.

        Returns:
            That batch.
        """
        started, committed = (sorted(int(file.name) for file in self.storage.list(d)) for d in ("offsets", "commits"))
        assert started[-1] in (committed[-1], committed[-1] + 1), "Spark's logs do not fit one another"
        batch = committed[-1] + 1
        assert {started[-1], started[-1] - 1} <= set(started), "Spark reads the offsets of the batch before as well"
        self.driver = self._new_driver()
        self.driver.query_id = json.loads(self.storage.read("metadata"))["id"]
        self.start(batch)
        self.driver.trigger(batch + 1)
        load(self.driver, self.storage, batch)
        return batch

    def rows(self) -> dict[SubtaskKey, Rows]:
        """The rows that the stores have."""
        return {key: {i: group for i, group in rows.items() if group} for key, rows in self.driver.rows.items()}

    def _new_driver(self) -> Driver:
        environment = faulty_environment(self.storage)
        return Driver(
            self.storage.location,
            operators=self.operators,
            settings=self.settings,
            environment=environment,
            checkpoint_format=self.checkpoint_format,
        )

    def _bases(self, batch: int) -> list[SubtaskKey]:
        """One subtask after the other brings a base."""
        subtasks = self.driver.subtasks()
        return [subtasks[batch % len(subtasks)]] if batch else []

    def _offset(self, batch: int) -> str:
        return json.dumps({"topic": {"0": 5 * batch, "1": 7 * batch}}, separators=(",", ":"))

    def _offsets(self, batch: int) -> bytes:
        settings = {"conf": {"spark.sql.shuffle.partitions": "4"}}
        return f"v1\n{json.dumps(settings)}\n{self._offset(batch)}".encode()

    @staticmethod
    def _metadata_of(operator: Operator) -> bytes:
        fields = {
            "operatorInfo": {"operatorId": operator.operator_id, "operatorName": operator.name},
            "stateStoreInfo": [
                {"storeName": store, "numColsPrefixKey": 0, "numPartitions": operator.parallelism}
                for store in operator.stores
            ],
        }
        return f"v1\n{json.dumps(fields)}".encode()


def make_query(directory: object, batches: int = 6, **arguments: object) -> Query:
    """A location on a local disk with so many committed batches; of the first two the checkpoints are gone."""
    query = Query(LocalStorage(str(directory)), **arguments)  # type: ignore[arg-type]
    query.run(range(batches))
    return query
