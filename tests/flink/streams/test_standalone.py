from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import spark_ckpt.flink.streams
from spark_ckpt.flink.streams.snappy import SnappyInput

# Errors hide credentials.
allowed = (
    "spark_ckpt.flink.streams", "spark_ckpt.format.decimals", "spark_ckpt.metadata", "spark_ckpt.errors",
    "spark_ckpt.redaction",
)
packages = ("spark_ckpt.flink", "spark_ckpt.format")
print(sorted(
    name for name in sys.modules
    if name.partition(".")[0] in ("pyspark", "py4j", "pyarrow", "click", "rich")
    or name.startswith("spark_ckpt.") and not name.startswith(allowed) and name not in packages
))
"""


def test_streams_need_nothing_but_the_metadata_and_decimals() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
