// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

/** Spark has no state in real-time mode before 4.3. */
private[ckpt] object RealTimeStarts {
  val areSupported = false

  def of(plan: LogicalPlan): Option[RealTimeStart] = None

  def settingIn(session: SparkSession, log: Path, key: String): Option[String] = None
}
