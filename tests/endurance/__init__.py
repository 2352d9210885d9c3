"""A long run in one driver, whose resource usage must not grow."""
