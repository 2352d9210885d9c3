from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.nexmark.feeds import Files, Kafka

WARMUPS, MEASURED = 2, 3


class Query:
    """A query that has processed one more batch at each look, and then fails."""

    def __init__(self, batches: int) -> None:
        self.looks = 0
        self.batches = batches
        self.waits = 0

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self.looks < self.batches

    @property
    def lastProgress(self) -> Any:  # noqa: N802
        self.looks += 1
        return None if self.looks == 1 else SimpleNamespace(batchId=self.looks - 2)

    def processAllAvailable(self) -> None:  # noqa: N802
        self.waits += 1


def files(folder: Path) -> list[Path]:
    made = [folder / f"{number:06}.parquet" for number in range(WARMUPS + MEASURED + 2)]
    for file in made:
        file.touch()
    return made


def test_files_appear_phase_by_phase(tmp_path: Path) -> None:
    prepared, folder = files(tmp_path), tmp_path / "events"
    feed = Files(prepared, folder, WARMUPS, MEASURED)
    query: Any = Query(9)

    def seen() -> list[str]:
        return sorted(file.name for file in folder.iterdir())

    names = [file.name for file in prepared]
    feed.warm_up(query)
    assert seen() == names[:2]
    feed.measure(query)
    assert seen() == names[:5]
    feed.restart()
    assert seen() == names[:6]
    feed.end()
    assert seen() == names
    assert query.waits == 2


def kafka(prepared: list[Path], written: list[Any]) -> Kafka:
    topics = SimpleNamespace(write=lambda topic, files: written.append((topic, list(files))))
    return Kafka(topics, prepared, "shared", "own", 100, WARMUPS, MEASURED)  # type: ignore[arg-type]


def test_a_topic_is_measured_from_the_end_of_its_first_batches(tmp_path: Path) -> None:
    query: Any = Query(9)
    kafka(files(tmp_path), []).warm_up(query)
    assert query.lastProgress.batchId == WARMUPS


def test_a_query_that_fails_meanwhile_is_not_waited_for(tmp_path: Path) -> None:
    query: Any = Query(1)
    kafka(files(tmp_path), []).warm_up(query)
    assert not query.isActive


def test_a_run_adds_to_a_topic_of_its_own(tmp_path: Path) -> None:
    prepared = files(tmp_path)
    written: list[Any] = []
    feed = kafka(prepared, written)
    feed.restart()
    feed.end()
    assert written == [("own", [prepared[5]]), ("own", [prepared[6]])]
