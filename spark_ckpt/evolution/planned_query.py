"""A query that is planned, not started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.operations.restore import as_hadoop_writes

SCRATCH = "spark-ckpt-scratch:"
"""Stands for the location in the metadata of operators."""


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query that is not started.

    Args:
        meaning: what its state means.
        stores: its stores.
        files: Spark's files of the state, which a start would write, by name relative to a checkpoint location.
        spark_version: version of Spark.
    """

    meaning: QueryMeaning
    stores: tuple[StoreSchema, ...]
    files: Mapping[str, bytes]
    spark_version: str

    def files_in(self, location: str, batch_id: int) -> dict[str, bytes]:
        """Its files of the state for a checkpoint location.

        Args:
            location: the checkpoint location, as the storage has it.
            batch_id: first batch that the files belong to.
        """
        moved = {}
        for name, data in self.files.items():
            directory, _, number = name.rpartition("/")
            if directory.endswith("_metadata/v2") and number == "0":
                moved[f"{directory}/{batch_id}"] = data.replace(SCRATCH.encode(), as_hadoop_writes(location).encode())
            else:
                moved[name] = data
        return moved
