"""Writes docs/settings.md from the table in `spark_ckpt.config`. A test fails while the page is not current."""

from __future__ import annotations

from pathlib import Path

from spark_ckpt.config import PREFIX, SETTINGS

PAGE = Path(__file__).resolve().parent / "settings.md"

INTRODUCTION = f"""\
# Settings

Written by `make docs` from the table in `spark_ckpt/config.py`.

One key is needed; the jar has to be on the class path:

    spark.sql.streaming.stateStore.providerClass = org.apache.spark.sql.ckpt.CheckpointStateStoreProvider

`transformWithState` needs another one, since Spark keeps that operator to its own provider:

    spark.sql.extensions = org.apache.spark.sql.ckpt.CheckpointExtensions

On an object store a third one has Spark write its own logs (`offsets`, `commits`, `sources`) with one conditional put
for an entry, in place of a file that is renamed, which takes some twenty requests there. On other file systems it
changes nothing:

    spark.sql.streaming.checkpointFileManagerClass = org.apache.spark.sql.ckpt.CheckpointLogFileManager

All others begin with `{PREFIX}` and are read when a query starts. `spark_ckpt.configure` has a
typed option for each, and `conf/spark-ckpt.properties` lists them for `spark-submit`. A misspelt key is an error that
names the nearest one there is.
"""


def settings_page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for setting in SETTINGS:
        default = "" if setting.default is None else f", default {setting.default}"
        parts.append(f"## `{setting.suffix}`\n\n({setting.kind}{default})\n\n{setting.doc}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(settings_page(), encoding="utf-8")
