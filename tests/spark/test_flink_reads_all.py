"""Real Flink as judge of every checkpoint that the tests of this folder have left. Runs last."""

from __future__ import annotations

import pytest

from tests.support.checkpoints import CheckpointJudge


@pytest.mark.parametrize("group", ["spark session", "drivers"])
def test_flink_agrees_on_every_metadata(judge: CheckpointJudge, group: str) -> None:
    """Flink's own loader reads every retained `_metadata`, and finds in it what our Python finds.

    After each group of tests: processes that share them know what they have run themselves.
    """
    if not judge.provider.is_ours:
        pytest.skip("only our provider leaves metadata files")
    if not judge.seen:
        pytest.skip("no test before this one has left a checkpoint: run the whole folder")
    from tests.support.flink_check import assert_flink_agrees, check

    verdicts = check(judge.seen)
    for path, verdict in verdicts.items():
        print(judge.seen[path])
        assert_flink_agrees(path, verdict)
    print(f"{len(verdicts)} files")
