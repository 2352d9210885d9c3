// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import java.util.concurrent.ConcurrentHashMap

/** Rescales that runs should begin with their next batch. Thread-safe. */
private[driver] final class WantedRescales {
  private val wanted = new ConcurrentHashMap[String, Integer]()

  def want(runId: String, partitions: Int): Unit = wanted.put(runId, partitions)

  /** True if no run has one, as before almost every batch. */
  def isEmpty: Boolean = wanted.isEmpty

  /** The number of partitions that a run should have. It is asked for once. */
  def take(runId: String): Option[Int] = Option(wanted.remove(runId)).map(_.intValue)

  /** A run has ended. */
  def forget(runId: String): Unit = wanted.remove(runId)
}
