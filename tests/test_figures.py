from __future__ import annotations

import pytest

from spark_ckpt.figures import human_duration, iso_time


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (-1, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_250, "1 s 250 ms"),
        (59_999, "59 s"),
        (65_000, "1 min 5 s"),
        (120_500, "2 min"),
        (4_800_000, "1 h 20 min"),
        (86_400_000, "1 d"),
        (3 * 86_400_000 + 1, "3 d"),
    ],
)
def test_durations(duration_ms: int, text: str) -> None:
    assert human_duration(duration_ms) == text


def test_times_are_in_utc() -> None:
    assert iso_time(1_700_000_000_001) == "2023-11-14T22:13:20.001Z"
