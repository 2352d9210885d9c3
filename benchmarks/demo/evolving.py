"""The Spark application that lets the changed queries continue from the state of the earlier ones."""

from __future__ import annotations

from typing import Any

from benchmarks.demo.driver import arguments_of, open_driver, rows_of
from benchmarks.demo.stages import SOURCE_REPLACED, queries_of
from spark_ckpt import evolve
from spark_ckpt.cli.commands.evolve import EvolutionResult


def main() -> None:
    """Evolve each query that a stage changes, and print what becomes of its state."""
    arguments, layout = arguments_of(main.__doc__)
    spark = open_driver(arguments, layout)
    answers: dict[str, Any] = {"sources": {0: None}} if layout.stage == SOURCE_REPLACED else {}
    try:
        for query in queries_of(layout.stage):
            rows = rows_of(spark, layout, query)
            done = evolve(rows, layout.checkpoint(query.name), output_mode=query.output_mode, **answers)
            for line in EvolutionResult(done).render():
                print(line)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
