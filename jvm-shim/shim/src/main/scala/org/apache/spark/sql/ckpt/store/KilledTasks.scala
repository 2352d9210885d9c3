// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.apache.spark.TaskContext

/** Tasks of Spark that were killed. Their threads are not always interrupted. */
private[ckpt] object KilledTasks {

  /**
   * Nothing in a thread without a task.
   *
   * @throws org.apache.spark.TaskKilledException if the task of this thread was killed
   */
  def check(): Unit = {
    val task = TaskContext.get()
    if (task != null) task.killTaskIfInterrupted()
  }
}
