"""Cost of the coordinator: CPU time per batch with many subtasks, without Spark and without a JVM.

python -m benchmarks.stores.coordinator ORDER RESULT, where ORDER is the JSON of an `Order` whose location is a folder.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.scale.executors import Executors
from benchmarks.stores.job import Order
from spark_ckpt.bridge import codec, protocol
from spark_ckpt.bridge.__main__ import collect_seldom
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.storage import LocalStorage
from tests.bridge import wire

WARMUPS = 5


def measure(order: Order) -> dict[str, Any]:
    """Plays the batches and measures the CPU time that the side process spends on the messages of each."""
    workload = order.workload
    collect_seldom()
    executors = Executors(order.location, workload.partitions)
    job: Job | None = None
    times = []
    for version in range(1, WARMUPS + workload.batches + 1):
        header = wire.message_of(executors.trigger(version))
        began = time.process_time()
        trigger = codec.decode(header)
        if job is None:
            job = Job(trigger, Environment(open_storage=lambda trigger: LocalStorage(trigger.location, durable=False)))
        reply = job.trigger(trigger)
        took = time.process_time() - began
        messages = [wire.message_of(ack) for ack in executors.acknowledgements(version, reply.key_group_factors)]
        executors.due.clear()
        began = time.process_time()
        replies = []
        for message in messages:
            ack = codec.decode(message)
            answer = job.acknowledge(ack)
            if answer.compaction.is_full:
                executors.due.add(ack.subtask)
            replies.append(codec.ok(message.id, answer))
            job.housekeeping()
        protocol.to_batch(replies)
        times.append((took + time.process_time() - began) * 1000)
        if answer.completed_version != version:
            raise AssertionError(f"version {version} is incomplete after its last ack: {answer}")
    return {"samples": {"coordinator_ms": times[WARMUPS:]}, "rows": 0}


def main(order: str, result: str) -> None:
    """Executes the order and writes the measurements as JSON."""
    Path(result).write_text(json.dumps(measure(Order.of_json(order))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
