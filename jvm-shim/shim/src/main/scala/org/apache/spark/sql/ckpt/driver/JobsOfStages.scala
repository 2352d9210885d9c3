/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
