from __future__ import annotations

import pytest

from spark_ckpt.messages import Operator, Trigger


@pytest.mark.parametrize("partitions", [1, 4, 200, 1000, 32767])
@pytest.mark.parametrize("stores", [1, 4])
def test_every_store_of_every_subtask_acknowledges(partitions: int, stores: int) -> None:
    operators = tuple(Operator(n, "op", tuple("abcd"[:stores]), partitions) for n in range(2))
    assert Trigger("location", "query", 0, 1, operators).acks == 2 * stores * partitions


def test_a_batch_without_stateful_operators_has_no_acks() -> None:
    assert Trigger("location", "query", 0, 1, ()).acks == 0
