"""`spark-ckpt tag`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, id_or_tag, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.figures import iso_time
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.selecting import selected_id
from spark_ckpt.operations.tagging import TaggedCheckpoint, tag_checkpoint


@dataclass(frozen=True, slots=True)
class TagResult(Result):
    """A new tag.

    Args:
        tagged: the checkpoint and its tag.
    """

    tagged: TaggedCheckpoint

    def to_json(self) -> JsonObject:
        """The tag and its checkpoint."""
        checkpoint = self.tagged.checkpoint
        return described("tag", self.tagged, checkpoint, timestamp=iso_time(checkpoint.timestamp_ms))

    def render(self) -> Iterator[str]:
        """The checkpoint and its tag."""
        checkpoint = self.tagged.checkpoint
        yield (
            f"checkpoint {checkpoint.id}, batch {checkpoint.batch_id}, {iso_time(checkpoint.timestamp_ms)}: "
            f"tagged {plain(self.tagged.tag)}"
        )


@click.command("tag")
@path_argument("location")
@click.argument("checkpoint", metavar="ID", callback=id_or_tag)
@click.argument("name")
@json_option
@pass_session
def tag_checkpoint_of_query(session: Session, location: str, checkpoint: int | str, name: str) -> None:
    """Name a checkpoint, and keep it readable.

    LOCATION is the checkpointLocation of a query, as a path or URL. The query may be running. NAME begins with a letter
    and has up to 100 letters, digits, dots, hyphens and underscores. A checkpoint may have several tags.

    As long as a checkpoint has a tag, its _metadata and state files stay, beyond `retained`, and every command that
    takes an --id takes the tag. Files shared with other checkpoints cost nothing more.

    A tag keeps state, not Spark's logs, which Spark purges after `spark.sql.streaming.minBatchesToRetain` batches. To
    start a query from the checkpoint later, take a savepoint of it. A rollback to an earlier checkpoint moves the tags
    of later ones away with everything else.

    \b
    Exit status: 0 done, 1 failed, 5 another checkpoint has this tag, or no tag can be given.

    \b
    Examples:
      spark-ckpt tag /data/query 17 before-upgrade
      spark-ckpt read /data/query --id before-upgrade
      spark-ckpt diff /data/query before-upgrade 42
    """
    place = CheckpointLocation.open(location)
    session.output.show(TagResult(tag_checkpoint(place.of_query(), selected_id(place, checkpoint), name)))
