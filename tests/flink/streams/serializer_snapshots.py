"""Flink's serializer snapshots, as bytes."""

from __future__ import annotations

import struct

from spark_ckpt.metadata import modified_utf8

BASE = "org.apache.flink.api.common.typeutils.base"
LONG = f"{BASE}.LongSerializer$LongSerializerSnapshot"
STRING = f"{BASE}.StringSerializer$StringSerializerSnapshot"
LIST = f"{BASE}.ListSerializerSnapshot"
MAP = f"{BASE}.MapSerializerSnapshot"
VOID = "org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot"


def utf(text: str) -> bytes:
    encoded = modified_utf8.encode(text)
    return struct.pack(">H", len(encoded)) + encoded


def simple(name: str) -> bytes:
    return utf(name) + struct.pack(">i", 3)


def composite(name: str, *nested: bytes, magic: int = 911108, version: int = 3) -> bytes:
    return utf(name) + struct.pack(">iiiiii", version, magic, 1, 1333245, 1, len(nested)) + b"".join(nested)
