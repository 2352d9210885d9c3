"""Change of the number of partitions: our metadata-only rescale against Spark's own repartition of RocksDB state."""
