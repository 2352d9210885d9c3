"""Another number of partitions: ours by metadata beside Spark's own offline repartition of RocksDB state."""
