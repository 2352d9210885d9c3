from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from spark_ckpt.format.segments import Section
from tests.flink.export.plans import plan_of, rows_of
from tests.support.state_location import StateLocation, row, schema

KEY = schema(user="string", sessionStartTime="timestamp")
WINDOW = schema(start="timestamp", end="timestamp")
VALUE = schema(user="string", session_window=WINDOW, count="long")


def test_each_session_is_an_entry_of_a_map(tmp_path: Path) -> None:
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)}, name="sessionWindowStateStoreSaveExec")
    sessions = [("a", -1, 10), ("a", 50_000_001, 60_000_000), ("b", -1, 10)]
    entries = tuple(
        (row(KEY, user, start), row(VALUE, user, {"start": start, "end": end}, 7)) for user, start, end in sessions
    )
    location.commit(Section(entries))
    plan = plan_of(location)
    (planned,) = plan.states
    assert planned.java == (
        'new MapStateDescriptor<>("sessions", Types.INSTANT, InternalTypeInfo.ofFields(new VarCharType('
        "VarCharType.MAX_LENGTH), new LocalZonedTimestampType(6), new LocalZonedTimestampType(6), new BigIntType()))"
    )
    assert planned.note == "columns: user, session_window.start, session_window.end, count"
    found = sorted(
        (each["key"], each["map_key"]["seconds"], each["map_key"]["nanos"], each["value"]["f2"], each["value"]["f3"])
        for each in rows_of(plan, "sessions")
    )

    def at(micros: int) -> datetime:
        return datetime.fromtimestamp(micros / 1e6, timezone.utc)

    assert found == [
        ("a", -1, 999_999_000, at(10), 7),
        ("a", 50, 1000, at(60_000_000), 7),
        ("b", -1, 999_999_000, at(10), 7),
    ]
