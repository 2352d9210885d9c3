// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** A file manager that closes the one of Spark behind it. */
private[ckpt] trait ClosingFileManager extends CheckpointFileManager {

  /** Lazy or a method: Spark's trait is initialised first. */
  protected def sparks: CheckpointFileManager

  override def close(): Unit = sparks.close()
}
