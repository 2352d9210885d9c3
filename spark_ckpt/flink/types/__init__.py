"""Types of Flink as columns of Arrow: one record for each, with its reader and its writer of whole columns."""
