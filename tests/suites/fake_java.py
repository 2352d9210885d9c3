"""Stands in for a JVM with ScalaTest: suites that behave as their names say, and report through the same event file.

`Bad` fails, `Flaky` fails unless its test runs alone, `Hanging` never ends, `Crashing` ends its JVM in the middle,
`Aborted` does not begin, one of the threads of `Losing` throws. Others pass.
"""

from __future__ import annotations

import json
import signal
import sys
from itertools import pairwise


def main() -> None:
    arguments = sys.argv[1:]
    (path,) = (each.partition("=")[2] for each in arguments if each.startswith("-Dsuites.events="))
    suites = [value for flag, value in pairwise(arguments) if flag == "-s"]
    alone = "-t" in arguments
    with open(path, "a", buffering=1, encoding="utf-8") as events:

        def tell(event: str, suite: str, **more: object) -> None:
            events.write(json.dumps({"event": event, "suite": suite, **more}) + "\n")

        for suite in suites:
            kind = suite.rpartition(".")[2]
            tell("suite started", suite)
            if kind == "Aborted":
                tell("suite aborted", suite, error="no Spark")
                continue
            tell("test started", suite, test="first")
            if kind == "Hanging":
                signal.pause()
            if kind == "Crashing":
                sys.exit(1)
            failed = kind == "Bad" or (kind == "Flaky" and not alone)
            if kind == "Losing":
                tell(
                    "uncaught",
                    suite,
                    error='"spark-ckpt-merge-0" java.lang.IllegalStateException: lost\n\tat Some.thing',
                )
            outcome, error = ("failed", "1 did not equal 2") if failed else ("passed", "")
            tell("test ended", suite, test="first", outcome=outcome, seconds=0.5, error=error, providers=2)
            tell("suite completed", suite, seconds=1.5)


if __name__ == "__main__":
    main()
