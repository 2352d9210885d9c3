"""A long run in one driver: what it uses must not grow."""
