"""The command `spark-ckpt`."""

from __future__ import annotations
