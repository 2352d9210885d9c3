// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.ckpt.ui.CheckpointReport

/**
 * A run of a query has claimed its location, or a checkpoint of it was triggered, acknowledged in part, completed,
 * aborted, or restored. Spark's event log has these events under the name of this class, except those of checkpoints in
 * progress: a later event has the same and more.
 *
 * @param report the report of the coordinator (docs/protocol.md, section 1.7). It stays JSON, so that a History Server
 *               with another release of spark-ckpt reads what it knows
 */
final case class SparkListenerCheckpoint(report: JsonNode) extends SparkListenerEvent {
  protected[spark] override def logEvent: Boolean =
    report == null || report.path("status").asText("") != CheckpointReport.Progress
}
