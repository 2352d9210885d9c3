"""Another number of partitions for the state of a query, by metadata only."""
