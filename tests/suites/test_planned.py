"""The comparison of planned and started queries finds a difference in files and in meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.checkpoint.meaning import QueryMeaning
from tests.suites import planned
from tests.support.meanings import function, meaning
from tests.support.state_location import Schema, schema, schema_v2

MEANING = meaning(("0.user",), (function("count(1)"),))
OTHER = meaning(("0.user",), (function("sum(0.v)"),))
KEY, VALUE = schema(user="string"), schema(n="long")


def ran(work: Path, run: str, value: Schema | None = VALUE) -> Path:
    """A query as `PlannedQueries` leaves it; without a value, its location was gone."""
    folder = work / run
    for kind, content in (("planned", VALUE), ("real", value)):
        state = folder / kind / "state" / "0"
        for path in (state / "_metadata" / "schema", state / "_metadata" / "v2" / "0"):
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                path.write_bytes(schema_v2(KEY, content) if path.name == "schema" else _metadata(folder, kind))
    (folder / "location").write_text(str(folder / "somewhere"))
    (folder / "meaning").write_bytes(MEANING.encode())
    return folder


def _metadata(folder: Path, kind: str) -> bytes:
    location = f"file:{folder / kind}" if kind == "planned" else f"file:{folder / 'somewhere'}"
    return f'v2\n{{"stateSchemaFilePaths":["{location}/state/0"]}}'.encode()


def test_files(tmp_path: Path) -> None:
    ran(tmp_path, "a")
    ran(tmp_path, "b", schema(n="int"))
    ran(tmp_path, "c", None)
    (ran(tmp_path, "d") / "error").write_text("no plan")
    done = planned.compared(tmp_path)
    assert (done.files, done.meanings, done.gone, done.unplanned) == (1, 0, 1, {"d": "no plan"})
    assert list(done.different) == ["b"]
    assert done.different["b"].startswith("state/0/_metadata/schema: planned ")


@pytest.mark.parametrize(("recorded", "meanings"), [(MEANING, 1), (OTHER, 0)])
def test_meanings(recorded: QueryMeaning, meanings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(tmp_path, "a")
    monkeypatch.setattr(planned, "_recorded", lambda _: recorded)
    done = planned.compared(tmp_path)
    assert (done.files, done.meanings, len(done.different)) == (1, meanings, 1 - meanings)
