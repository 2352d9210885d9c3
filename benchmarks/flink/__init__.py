"""Nexmark on Flink SQL beside Structured Streaming with our provider: same events, same cores, same heap."""
