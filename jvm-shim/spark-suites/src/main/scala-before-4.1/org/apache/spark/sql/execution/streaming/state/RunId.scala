// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state

import org.apache.spark.sql.execution.streaming.StreamExecution

/** Where a provider finds the id of the query's run. */
object RunId {
  val Key: String = StreamExecution.RUN_ID_KEY
}
