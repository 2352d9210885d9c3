"""Checkpoints and savepoints of real Flink with random damage, read as tables."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from spark_ckpt import metadata as m
from spark_ckpt.cli.results.state import rows_json
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.flink.tables.find import find_flink_state
from spark_ckpt.flink.tables.read import FlinkScan
from tests.flink.streams.corpus import BACKENDS, JOBS

_MAX_ROWS = 50
_NUMBERS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", bytes(4), b"\x80\0\0\0")
VECTORS = [vector.directory for vector in (*JOBS, *BACKENDS)]


def damage(rng: random.Random, content: bytes) -> bytes:
    """Bytes with some changed, removed, added, or made a number at an edge."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not changed:
            break
        at, how = rng.randrange(len(changed)), rng.random()
        if how < 0.5:
            changed[at] = rng.randrange(256)
        elif how < 0.7:
            changed[at] ^= 1 << rng.randrange(8)
        elif how < 0.8:
            del changed[at : at + rng.randrange(1, 9)]
        elif how < 0.9:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            changed[at : at + 4] = rng.choice(_NUMBERS)
    return bytes(changed)


def damaged_copy(rng: random.Random, place: Path, among: Sequence[Path] = VECTORS) -> Path:
    """Copy of a random checkpoint in a new directory, with damage in one of its files."""
    shutil.copytree(rng.choice(among), place)
    files = sorted(path for path in place.rglob("*") if path.is_file() and path.stat().st_size)
    metadata = [path for path in files if path.name == m.METADATA_FILE_NAME]
    chosen = rng.choice(files if rng.random() < 0.6 else metadata)
    chosen.write_bytes(damage(rng, chosen.read_bytes()))
    return place


def read(place: Path) -> bool:
    """Reads all tables of a damaged copy; True unless an error of ours refuses one.

    Any other exception is a bug.
    """
    try:
        for metadata in sorted(place.rglob(m.METADATA_FILE_NAME)):
            catalog = find_flink_state(str(metadata.parent), allow_outside=True)
            for state in () if catalog is None else catalog.states():
                assert catalog is not None
                for batch in FlinkScan(catalog, state).batches():
                    for _ in rows_json(batch.slice(0, _MAX_ROWS)):
                        pass
    except SparkCkptError:
        return False
    return True
