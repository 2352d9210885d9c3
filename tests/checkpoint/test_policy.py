from __future__ import annotations

import pytest

from spark_ckpt.checkpoint.policy import (
    Placement,
    ack_threshold,
    discards_checkpoints,
    place,
    retained_checkpoints,
    shipping_limits,
)
from spark_ckpt.completed import JobStatus
from spark_ckpt.config import ACK_MEMORY, ACK_THRESHOLD, MAX_INLINE_BYTES, CheckpointConfig

CONFIG = CheckpointConfig()


def test_small_new_state_stays_inline() -> None:
    assert place(CONFIG.inline_threshold, 0, CONFIG) is Placement.INLINE
    assert place(CONFIG.inline_threshold + 1, 0, CONFIG) is Placement.FILE


def test_the_inline_state_of_one_metadata_is_capped() -> None:
    assert place(100, MAX_INLINE_BYTES - 100, CONFIG) is Placement.INLINE
    assert place(101, MAX_INLINE_BYTES - 100, CONFIG) is Placement.FILE


def test_a_threshold_of_0_writes_files_always() -> None:
    assert place(1, 0, CheckpointConfig(inline_threshold=0)) is Placement.FILE


@pytest.mark.parametrize("cleanup", ["deleteOnEnd", "deleteOnCancellation"])
def test_a_suspended_query_keeps_its_checkpoints_whatever_the_settings_say(cleanup: str) -> None:
    config = CheckpointConfig(cleanup=cleanup)
    assert discards_checkpoints(JobStatus.CANCELLED, config)
    assert not discards_checkpoints(JobStatus.SUSPENDED, config)


def test_never_fewer_than_two_are_retained() -> None:
    assert retained_checkpoints(CheckpointConfig(retained=1)) == 2
    assert retained_checkpoints(CheckpointConfig(retained=7)) == 7


@pytest.mark.parametrize("partitions", [1, 4, 200, 1000, 32767])
@pytest.mark.parametrize("stores", [1, 4])
def test_what_travels_with_the_acks_of_a_batch_fits_into_its_memory(partitions: int, stores: int) -> None:
    config = CheckpointConfig.parse({ACK_MEMORY.key: str(64 << 20)})
    acks = 2 * stores * partitions
    threshold = ack_threshold(acks, config)
    assert 2 * threshold * acks <= 64 << 20, "a delta and a base of each"
    assert threshold <= config.ack_threshold
    assert threshold == config.ack_threshold or 2 * (threshold + 1) * acks > 64 << 20, "no lower than needed"


def test_few_tasks_have_the_whole_threshold() -> None:
    assert ack_threshold(64, CheckpointConfig()) == CheckpointConfig().ack_threshold
    assert ack_threshold(0, CheckpointConfig()) == CheckpointConfig().ack_threshold
    small = CheckpointConfig.parse({ACK_THRESHOLD.key: "10"})
    assert ack_threshold(64, small) == 10


def test_a_file_of_several_tasks_holds_more_than_travels_with_an_ack() -> None:
    limits = shipping_limits(64, CONFIG)
    assert limits.ack_threshold == CONFIG.ack_threshold < limits.shared_file_bytes
    assert 0 < limits.shared_file_wait_ms < 1000, "within a batch"
