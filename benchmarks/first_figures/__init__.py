"""First figures: our provider beside Spark's own, in one run, on a running count over many keys."""
