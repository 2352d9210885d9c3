"""Earlier name of `spark_ckpt.flink.streams`."""

from __future__ import annotations

from spark_ckpt.flink.streams import *  # noqa: F403
from spark_ckpt.flink.streams import __all__ as __all__
