"""Driver with its coordinator in the side process."""

from __future__ import annotations

import json

from spark_ckpt.format.key_groups import factors
from spark_ckpt.messages import Ack
from tests.bridge import wire
from tests.bridge.side_process import SideProcess
from tests.support.driver import Driver


class RemoteDriver(Driver):
    """Driver with its coordinator in another process."""

    def groups_of(self, key: object) -> list[int]:
        chain = factors(4, 1024)
        width = chain[0] and 1024 // 4
        partition = key.partition  # type: ignore[attr-defined]
        return list(range(partition * width, (partition + 1) * width))

    def acks(self, version: int) -> list[Ack]:
        return [self.make_ack(key, version) for key in self.subtasks()]


def run_batch(process: SideProcess, driver: RemoteDriver, version: int) -> dict[str, object]:
    header, reply = process.ask(*wire.trigger(driver.make_trigger(version)))
    assert reply.kind == "ok", header
    acks = driver.acks(version)
    process.send(*(wire.ack(ack) for ack in acks))
    replies = [process.receive() for _ in acks]
    assert {reply.kind for reply in replies} == {"ok"}
    for ack in acks:
        driver.take_over(ack)
    last: dict[str, object] = json.loads(replies[-1].header)
    return last
