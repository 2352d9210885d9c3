// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqLog

/** Starts of queries in real-time mode, as the analyzer sees them: Spark has not touched the location yet. */
private[ckpt] object RealTimeStarts {
  val areSupported = true

  def of(plan: LogicalPlan): Option[RealTimeStart] = plan match {
    case start: WriteToStreamStatement
        if StreamingPlans.realTimeMs(start.trigger).isDefined && start.inputQuery.exists(_.isStateful) =>
      Some(RealTimeStart(
        start.userSpecifiedName,
        start.userSpecifiedCheckpointLocation,
        start.hadoopConf,
        start.inputQuery.exists(StreamingPlans.transformsWithState)))
    case _ => None
  }

  /** The setting in the newest entry of an offset log; None without an entry. */
  def settingIn(session: SparkSession, log: Path, key: String): Option[String] =
    new OffsetSeqLog(session, log.toString, true).getLatest().flatMap(_._2.metadataOpt).flatMap(_.conf.get(key))
}
