"""Changing the number of partitions: our metadata-only rescale and Spark's offline repartition of RocksDB state."""
