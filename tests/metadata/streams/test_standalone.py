from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import spark_ckpt.metadata.streams
from spark_ckpt.metadata.streams.snappy import SnappyInput

# Errors hide credentials.
allowed = ("spark_ckpt.metadata", "spark_ckpt.errors", "spark_ckpt.redaction")
print(sorted(
    name for name in sys.modules
    if name.partition(".")[0] in ("pyspark", "py4j", "pyarrow", "click", "rich")
    or name.startswith("spark_ckpt.") and not name.startswith(allowed)
))
"""


def test_streams_need_nothing_but_the_metadata() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
