"""A query evolves beside a driver that lives, and toward a source that fails: the old query or the new one, whole."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_ckpt import evolve, read_state
from spark_ckpt.location.errors import LocationInUseError
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.support.changed_query import ALL, RECENT, ChangedQuery, last, rows, touched
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("ours_only")
SECONDS = 60


def earlier(changed: ChangedQuery) -> DataFrame:
    return changed.source().groupBy("k").agg(sf.count("*"))


def later(changed: ChangedQuery, source: int = 0) -> DataFrame:
    return changed.source(source).groupBy("k").agg(sf.sum("v"), sf.count("*"))


def counts(*files: tuple[int, int]) -> dict[str, tuple[int, int]]:
    """Sum and count of each user over files, each given with its source."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for file, source in files:
        for row in rows(file, source):
            total, number = found[row["k"]]
            found[row["k"]] = total + row["v"], number + 1
    return found


def test_a_driver_that_lives_ends_at_its_next_batch(changed: ChangedQuery) -> None:
    """Without force, nothing is changed; with it, the earlier run commits nothing more."""
    writer = earlier(changed).writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", changed.location).trigger(processingTime="100 milliseconds").start()
    try:
        eventually(Path(changed.location, "commits", "2").exists, SECONDS)
        before = files_of(changed)
        with pytest.raises(LocationInUseError):
            evolve(later(changed), changed.location, output_mode="update")
        assert files_of(changed) == before
        evolve(later(changed), changed.location, output_mode="update", force=True)
        commits = sorted(Path(changed.location, "commits").glob("[0-9]*"))
        changed.more()
        with pytest.raises(StreamingQueryException, match=r"Fenced|CONCURRENT_STREAM_LOG_UPDATE"):
            query.awaitTermination(SECONDS)
    finally:
        query.stop()
    assert sorted(Path(changed.location, "commits").glob("[0-9]*")) == commits
    got = last(changed.run(later(changed)), 1)
    every, recent = counts(*((file, 0) for file in ALL)), counts(*((file, 0) for file in RECENT))
    assert got == {(key,): (recent[key][0], every[key][1]) for key in touched(RECENT, lambda row: row["k"])}
    changed.judge.check(Path(changed.location), all_retained=False)


def files_of(changed: ChangedQuery) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path(changed.location).rglob("*") if path.is_file()}


def state_of(changed: ChangedQuery) -> dict[str, tuple[int | None, int]]:
    found = read_state(changed.location).to_arrow().to_pylist()
    return {each["key"]["k"]: tuple(each["value"].values()) for each in found}


def test_a_new_source_that_fails(changed: ChangedQuery) -> None:
    """Each start fails until the source is mended, and changes nothing; the earlier query is a rollback away."""
    changed.run(earlier(changed))
    new = later(changed, 1)
    done = changed.evolve(new, sources={0: None})
    broken = changed.folder / "in1" / "broken.json.gz"
    broken.write_bytes(b"no gzip at all")
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=r"broken\.json\.gz"):
            changed.run(new)
        assert verify(LocalStorage(Path(changed.location)), everything=True).is_whole
    broken.write_bytes(gzip.compress(b""))
    changed.run(new)
    first, second = counts(*((file, 0) for file in range(3))), counts(*((file, 1) for file in range(3)))
    assert state_of(changed) == {k: (second[k][0] if k in second else None, first[k][1] + second[k][1]) for k in first}
    roll_back(LocalStorage(Path(changed.location)), done.from_checkpoint, force=True)
    changed.more()
    got = last(changed.run(earlier(changed)), 1)
    every = counts(*((file, 0) for file in ALL))
    assert got == {(key,): (every[key][1],) for key in touched(RECENT, lambda row: row["k"])}


def test_the_first_batch_after_an_evolution_fails(changed: ChangedQuery) -> None:
    """A source that throws in the middle of the batch: the state of the changed query is as before it."""
    changed.run(earlier(changed))
    changed.more()

    def frame(condition: Column) -> DataFrame:
        return changed.source().where(condition).groupBy("k").agg(sf.sum("v"), sf.count("*"))

    works, fails = frame(sf.lit(True)), frame(sf.expr("if(v > 90, raise_error('broken row'), true)"))
    changed.evolve(works)
    assert any(row["v"] > 90 for file in RECENT for row in rows(file))
    with pytest.raises(StreamingQueryException, match="broken row"):
        changed.run(fails)
    got = last(changed.run(works), 1)
    every, recent = counts(*((file, 0) for file in ALL)), counts(*((file, 0) for file in RECENT))
    assert got == {(key,): (recent[key][0], every[key][1]) for key in touched(RECENT, lambda row: row["k"])}
    changed.judge.check(Path(changed.location), all_retained=False)
