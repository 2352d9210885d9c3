"""Earlier name of `spark_ckpt.flink.streams.serializers`."""

from __future__ import annotations

from spark_ckpt.flink.streams.serializers import CLASS_NAMES, read_serializer, write_serializer

__all__ = ["CLASS_NAMES", "read_serializer", "write_serializer"]
