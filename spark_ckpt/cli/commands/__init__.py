"""The commands of `spark-ckpt`, one per file."""
