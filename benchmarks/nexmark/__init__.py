"""Nexmark on Structured Streaming: one event stream, many queries, our provider beside Spark's own."""
