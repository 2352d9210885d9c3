"""Mapping of Spark's stateful operators to states of Flink, one module per operator."""
