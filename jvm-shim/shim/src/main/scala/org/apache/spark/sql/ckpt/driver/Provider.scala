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

import org.apache.spark.sql.ckpt.common.EntryPoints
import org.apache.spark.sql.ckpt.compat.StreamingPlans
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/** The state-store provider of queries and sessions. */
private[driver] object Provider {
  val Key = "spark.sql.streaming.stateStore.providerClass"
  val Ours: String = EntryPoints.Provider

  /** Provider of a run: that of the location's first run, or else of the session. */
  def of(query: StreamExecution): String =
    StreamingPlans.sessionOfRun(query).sessionState.conf.getConfString(Key, "")

  def isOurs(query: StreamExecution): Boolean = of(query) == Ours
}
