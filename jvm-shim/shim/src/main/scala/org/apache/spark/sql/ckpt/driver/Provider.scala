// SPDX-License-Identifier: Apache-2.0
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
