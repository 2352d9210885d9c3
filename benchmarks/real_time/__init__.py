"""Latency of rows in Spark's real-time mode: our provider and RocksDB, from Kafka to Kafka."""
