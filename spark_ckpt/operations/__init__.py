"""What an operator does to a checkpoint location, without Spark."""
