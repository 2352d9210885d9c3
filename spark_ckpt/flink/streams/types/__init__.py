"""Flink's serializers, one module per family: snapshot, values read and written, hash of a key."""
