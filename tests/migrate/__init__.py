"""Queries that began with a provider of Spark: written by several releases of Spark, and continued after an import."""
