"""`spark-ckpt untag`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.tags import Tag
from spark_ckpt.operations.tagging import untag_checkpoint


@dataclass(frozen=True, slots=True)
class UntagResult(Result):
    """A removed tag.

    Args:
        location: the checkpoint location.
        tag: the tag.
    """

    location: str
    tag: Tag

    def to_json(self) -> JsonObject:
        """The tag and the checkpoint that had it."""
        return described("untag", self, tag=self.tag.name, id=self.tag.checkpoint_id)

    def render(self) -> Iterator[str]:
        """The tag and the checkpoint that had it."""
        yield f"checkpoint {self.tag.checkpoint_id}: tag {plain(self.tag.name)} removed"


@click.command("untag")
@path_argument("location")
@click.argument("name")
@json_option
@pass_session
def untag_checkpoint_of_query(session: Session, location: str, name: str) -> None:
    """Remove the name of a checkpoint.

    LOCATION is the checkpointLocation of a query, as a path or URL. The query may be running. Unless another tag,
    `retained` or another checkpoint keeps its files, the query deletes them after one of its next batches; `spark-ckpt
    gc` deletes those of a stopped query.

    \b
    Examples:
      spark-ckpt untag /data/query before-upgrade
    """
    storage = CheckpointLocation.open(location).of_query()
    session.output.show(UntagResult(storage.location, untag_checkpoint(storage, name)))
