package org.apache.spark.sql.ckpt.backend

/** More state than the formats or arrays can address. The message names the way out. */
final class StateTooLargeException(message: String) extends RuntimeException(message)
