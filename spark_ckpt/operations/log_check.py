"""Whether the log of completed checkpoints is what its drivers can have written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from spark_ckpt.completed import ClaimRecord, Record
from spark_ckpt.operations.damage import Damage


def check_log(records: Mapping[int, Record], path_of: Callable[[int], str]) -> Iterator[Damage]:
    """Generations never go back, each claim opens a new one, and a checkpoint is its claimant's.

    Args:
        records: those of the log that can be read, by id, ascending.
        path_of: the file of a record.
    """
    for before, after in pairwise(records.values()):
        if after.generation < before.generation:
            reason = f"generation {after.generation} comes after generation {before.generation} of record {before.id}"
            yield Damage(path_of(after.id), reason)
        elif isinstance(after, ClaimRecord) and after.generation == before.generation:
            yield Damage(path_of(after.id), f"the claim has the generation {after.generation} of record {before.id}")
    claim: ClaimRecord | None = None
    for record in records.values():
        if isinstance(record, ClaimRecord):
            claim = record
        elif claim is not None and claim.generation == record.generation and claim.owner != record.owner:
            yield Damage(
                path_of(record.id), f"the checkpoint is of {record.owner}; the claim was that of {claim.owner}"
            )
