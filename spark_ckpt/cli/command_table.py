"""The commands of `spark-ckpt`, without loading them."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """Place of a command.

    Args:
        module: module in `spark_ckpt.cli.commands`.
        function: the command there.
        help: its line in the list of commands.
    """

    module: str
    function: str
    help: str


COMMANDS = {
    "convert": Place("convert", "convert_checkpoint", "Rewrite checkpoint metadata in another format version."),
    "diff": Place("diff", "diff_checkpoints", "Print the changes in state between two checkpoints."),
    "doctor": Place("doctor", "examine_location", "Examine a query's checkpoints, and say what to do next."),
    "edit": Place("edit", "edit_rows", "Set and delete rows in the state of a stopped query."),
    "erase": Place("erase", "erase_keys", "Remove all state of some grouping keys from a stopped query."),
    "evolve": Place("evolve", "evolve_query", "Let a changed query continue from earlier state."),
    "export": Place("export", "export_query", "Export a query's state to Spark or Flink."),
    "failover": Place("failover", "fail_over_to_mirror", "Make a mirror the location of its query."),
    "gc": Place("gc", "collect_orphans", "Delete files that no completed checkpoint refers to."),
    "history": Place("history", "show_history", "Show recent checkpoint durations and failures."),
    "history-of": Place("history_of", "show_history_of_keys", "Show what the files tell about a key, batch by batch."),
    "import": Place("import_", "import_query", "Import a query's state from a Spark provider."),
    "import-flink": Place(
        "import_flink", "import_flink_state", "Import keyed state of a Flink job, without Spark and Flink."
    ),
    "inspect": Place("inspect", "inspect_checkpoint", "Show all metadata of one checkpoint."),
    "list": Place("list", "list_checkpoints", "List completed checkpoints, oldest first."),
    "mirror": Place("mirror", "mirror_query", "Keep a copy of a query's location that follows it."),
    "offsets": Place("offsets", "show_or_move_offsets", "Show the positions of a query's sources, or move them."),
    "probe": Place("probe", "probe_storage", "Test whether a storage can fence two drivers."),
    "read": Place("read", "read_rows", "Print rows of state, without Spark and Flink."),
    "relocate": Place("relocate", "relocate_checkpoint", "Rewrite checkpoint metadata for moved state files."),
    "rescale": Place("rescale", "rescale_query", "Change the number of partitions of a query."),
    "restore": Place("restore", "restore_checkpoint", "Create a checkpoint location from a savepoint or checkpoint."),
    "rollback": Place("rollback", "roll_back_query", "Roll a stopped query back to an earlier checkpoint."),
    "savepoint": Place("savepoint", "take_savepoint_of_query", "Copy a checkpoint into a self-contained savepoint."),
    "state": Place("state", "show_state", "Show operators, stores and row types of a checkpoint."),
    "tag": Place("tag", "tag_checkpoint_of_query", "Name a checkpoint, and keep it readable."),
    "untag": Place("untag", "untag_checkpoint_of_query", "Remove the name of a checkpoint."),
    "verify": Place("verify", "verify_checkpoints", "Read checkpoints in full and report damage."),
}
"""Place of each command by its name."""
