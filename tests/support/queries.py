"""Checkpoint locations as left by a query: the coordinator's files and Spark's."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.messages import Operator, Rescale, RescaleReply
from spark_ckpt.spark_files.entries import SHUFFLE_PARTITIONS
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage, Storage
from tests.support.driver import Driver, Rows, faulty_environment, load
from tests.support.locations import LocationBuilder
from tests.support.state_location import schema, schema_v2

OPERATORS = (Operator(0, "stateStoreSave", ("default",), 4, 2), Operator(1, "symmetricHashJoin", ("left", "right"), 2))
RESCALABLE = (
    Operator(0, "stateStoreSave", ("default",), 4, 2),
    Operator(1, "symmetricHashJoin", ("left", "right"), 4),
)
SETTINGS = {"retained": "4", "inlineThreshold": "0"}
ENDED = 2**22 + 1
"""Process id of the drivers, above Linux's maximum: commands find that the process has ended."""


@dataclass
class Query:
    """A query run by the tests' own driver, which writes Spark's files as well.

    Args:
        storage: storage of the checkpoint location.
        settings: settings of the query.
        checkpoint_format: with 2, the commit log names the state ids.
        operators: stateful operators of the query.
        provider: the state-store provider that Spark records for the query.
    """

    storage: Storage
    settings: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    checkpoint_format: int = 1
    operators: tuple[Operator, ...] = OPERATORS
    provider: str = PROVIDER_CLASS

    def __post_init__(self) -> None:
        self.driver = self._new_driver()
        if self.storage.exists("metadata"):
            self.driver.query_id = json.loads(self.storage.read("metadata"))["id"]
            return
        builder = LocationBuilder(self.storage).query(self.driver.query_id)
        self.storage.write_atomic("sources/0/0", b"v1\nfiles of batch 0")
        for operator in self.operators:
            schemas = dict.fromkeys(range(operator.parallelism), schema_v2(schema(key="string"), schema(n="long")))
            builder.operator(
                operator.operator_id, operator.name, operator.stores, operator.parallelism, schemas=schemas
            )

    def run(self, batches: range, *, commit_last: bool = True) -> None:
        """Runs batches in Spark's order: offsets, tasks, commit."""
        for batch in batches:
            self.start(batch)
            self.driver.batch(batch + 1, self._bases(batch))
            if commit_last or batch != batches[-1]:
                self.commit(batch)

    def start(self, batch: int) -> None:
        """Writes the batch's entry of Spark's offset log."""
        self.driver.sources = (Source("0", self._offset(batch)),)
        if not self.storage.exists(f"offsets/{batch}"):
            self.storage.write_atomic(f"offsets/{batch}", self._offsets(batch))

    def commit(self, batch: int) -> None:
        """Writes the batch's entry of Spark's commit log."""
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
        """Starts a new run of the query, as Spark does at the batch after the last committed one.

        Returns:
            The id of that batch.
        """
        batch = self.open()
        load(self.driver, self.storage, batch)
        return batch

    def open(self) -> int:
        """Starts a new run like `restart`, but stops before executors read the state."""
        started, committed = (sorted(int(file.name) for file in self.storage.list(d)) for d in ("offsets", "commits"))
        assert started[-1] in (committed[-1], committed[-1] + 1), "Spark's logs do not fit one another"
        batch = committed[-1] + 1
        assert {started[-1], started[-1] - 1} <= set(started), "Spark reads the offsets of the batch before as well"
        self.driver = self._new_driver()
        self.driver.query_id = json.loads(self.storage.read("metadata"))["id"]
        self.start(batch)
        self.driver.trigger(batch + 1)
        return batch

    def rows(self) -> dict[SubtaskKey, Rows]:
        """Rows of each store."""
        return {key: {i: group for i, group in rows.items() if group} for key, rows in self.driver.rows.items()}

    def _new_driver(self) -> Driver:
        environment = replace(faulty_environment(self.storage), pid=ENDED)
        return Driver(
            self.storage.location,
            operators=self.operators,
            settings=self.settings,
            environment=environment,
            checkpoint_format=self.checkpoint_format,
        )

    def _bases(self, batch: int) -> list[SubtaskKey]:
        """The subtask that sends a base snapshot in this batch; subtasks take turns."""
        subtasks = self.driver.subtasks()
        return [subtasks[batch % len(subtasks)]] if batch else []

    def _offset(self, batch: int) -> str:
        return json.dumps({"topic": {"0": 5 * batch, "1": 7 * batch}}, separators=(",", ":"))

    def _offsets(self, batch: int) -> bytes:
        settings = {"conf": {"spark.sql.shuffle.partitions": "4", PROVIDER_KEY: self.provider}}
        return f"v1\n{json.dumps(settings)}\n{self._offset(batch)}".encode()


@dataclass
class RescalableQuery(Query):
    """A query whose drivers take the number of partitions from Spark's log."""

    operators: tuple[Operator, ...] = RESCALABLE

    def rescale(self, batch: int, partitions: int) -> RescaleReply:
        """Asks before a batch, as our hook at its entry of the offset log does."""
        assert self.driver.job is not None
        reply = self.driver.job.rescale(Rescale(batch, partitions, job=self.driver.run_id))
        self.have(partitions)
        return reply

    def have(self, partitions: int) -> None:
        """From now on, the plans of the driver have this number."""
        self.operators = tuple(replace(operator, parallelism=partitions) for operator in self.operators)
        self.driver.operators = self.operators

    def first(self, batch: int) -> None:
        """Runs the first batch with another number: the executors load its state."""
        self.start(batch)
        self.driver.trigger(batch + 1)
        load(self.driver, self.storage, batch)
        self.driver.batch(batch + 1)
        self.commit(batch)

    def crash(self) -> int:
        """Starts another run, which takes the number from the log as Spark does."""
        newest = max(int(file.name) for file in self.storage.list("offsets"))
        number = SparkLog(self.storage).offsets(newest).shuffle_partitions
        assert number is not None
        self.have(number)
        return self.restart()

    def all_rows(self) -> dict[StoreKey, Rows]:
        """Rows of each store, of all subtasks."""
        rows: dict[StoreKey, Rows] = {}
        for key, groups in self.rows().items():
            for group, entries in groups.items():
                rows.setdefault(key.of_operator, {}).setdefault(group, {}).update(entries)
        return rows

    def _offsets(self, batch: int) -> bytes:
        content = super()._offsets(batch).decode()
        number = self.operators[0].parallelism
        return content.replace(f'"{SHUFFLE_PARTITIONS}": "4"', f'"{SHUFFLE_PARTITIONS}": "{number}"').encode()


def make_query(directory: object, batches: int = 6, **arguments: object) -> Query:
    """A location on a local disk with `batches` committed batches; the checkpoints of the first two are gone."""
    query = Query(LocalStorage(str(directory)), **arguments)  # type: ignore[arg-type]
    query.run(range(batches))
    return query
