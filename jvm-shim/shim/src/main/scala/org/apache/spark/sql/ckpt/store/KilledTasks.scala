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
