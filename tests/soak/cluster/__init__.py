"""Large state on a cluster of several executors: stops, kills and moved partitions while merges and bases run."""
