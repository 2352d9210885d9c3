// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import java.util.concurrent.ConcurrentHashMap

/**
 * Jobs of stages. A stage is forgotten on completion or with its job; until then a failed or cancelled one may run
 * again. Thread-safe.
 */
private[driver] final class JobsOfStages {
  private val jobs = new ConcurrentHashMap[Int, String]()

  def put(stageId: Int, job: String): Unit = jobs.put(stageId, job)

  def get(stageId: Int): Option[String] = Option(jobs.get(stageId))

  def remove(stageId: Int): Unit = jobs.remove(stageId)

  /** The job has ended. */
  def forget(job: String): Unit = jobs.values.removeIf(_ == job)

  private[driver] def size: Int = jobs.size
}
