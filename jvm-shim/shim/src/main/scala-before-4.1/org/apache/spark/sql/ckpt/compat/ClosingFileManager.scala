// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.sql.execution.streaming.CheckpointFileManager

/** Spark's file managers have no `close` before 4.1. */
private[ckpt] trait ClosingFileManager extends CheckpointFileManager {
  protected def sparks: CheckpointFileManager
}
