"""Operations on a checkpoint location, without Spark."""
