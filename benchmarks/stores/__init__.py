"""State-store providers side by side: ours, Spark's own and a floor, on the same workloads in turns."""
