from __future__ import annotations

from spark_ckpt.operations.advice import Step
from spark_ckpt.operations.doctor import Finding, Report, Status
from spark_ckpt.operations.doctor.findings import command_line

GO_BACK = Step.GO_BACK.say(checkpoint=1)


def test_the_most_urgent_step_comes_first_and_none_twice() -> None:
    findings = (
        Finding("a", Status.WARNING, "", Step.COLLECT.say(), "spark-ckpt gc /x"),
        Finding("b", Status.PROBLEM, "", GO_BACK, "spark-ckpt rollback /x --id 1"),
        Finding("c", Status.PROBLEM, "", GO_BACK, "spark-ckpt rollback /x --id 1"),
        Finding("d", Status.OK, ""),
    )
    assert list(Report("/x", findings).next_steps()) == [
        f"{GO_BACK}: spark-ckpt rollback /x --id 1",
        f"{Step.COLLECT.value}: spark-ckpt gc /x",
    ]


def test_a_command_is_quoted_for_a_shell() -> None:
    assert command_line("rollback", "/a b/$(x)", "--id", 3) == "spark-ckpt rollback '/a b/$(x)' --id 3"
