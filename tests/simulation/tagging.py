"""Tags in a simulated world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.listing import list_completed
from spark_ckpt.location.tags import Tag, Tags
from spark_ckpt.operations.tagging import tag_checkpoint, untag_checkpoint

if TYPE_CHECKING:
    from tests.simulation.world import World

TAG = "tag a checkpoint"

UNTAGS = 0.4
"""Probability that a tag is removed, if there is one."""


def tag_or_untag(world: World) -> None:
    """Runs `spark-ckpt tag` or `spark-ckpt untag`, whatever drivers live."""
    storage = world.storage(world.scheduler.current().group)
    try:
        there = [tag for tag in Tags(storage).list() if world.checks.is_tagged(tag.file)]
        if there and world.rng.random() < UNTAGS:
            untag_checkpoint(storage, world.rng.choice(there).name)
            world.count("untagged")
        elif records := list_completed(storage).records:
            done = tag_checkpoint(storage, world.rng.choice(records).id, f"t{world.new_id()}")
            world.checks.tagged(Tag(done.tag, done.checkpoint.id).file, done.checkpoint.id)
            world.count("tagged")
    except SparkCkptError as e:
        world.count(f"tag failed: {type(e).__name__}")


def remove_failed(world: World) -> None:
    """Removes the tags of commands that failed, as their message says."""
    for name in list(world.disk.directories.get("ckpt/tags", {})):
        if not world.checks.is_tagged(f"ckpt/tags/{name}"):
            world.disk.delete(f"ckpt/tags/{name}")
