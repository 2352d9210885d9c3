// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.Redaction
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

/**
 * Warning about a query that runs with another state-store provider than its session sets. Spark keeps the provider of
 * the location's first run, which its offset log names, and overrides the setting.
 */
private[driver] final class OtherProviderWarning extends Logging {
  private val warned = new ThreadLocal[String]

  /** Warns once for each run. */
  def check(query: StreamExecution): Unit = {
    val run = query.runId.toString
    if (warned.get() != run) {
      warned.set(run)
      OtherProviderWarning.text(
        asked = query.sparkSession.sessionState.conf.getConfString(Provider.Key, ""),
        runsWith = Provider.of(query),
        location = query.resolvedCheckpointRoot).foreach(logWarning(_))
    }
  }
}

private[driver] object OtherProviderWarning {
  /** @return None if there is nothing to warn of */
  def text(asked: String, runsWith: String, location: String): Option[String] =
    if (asked != Provider.Ours || runsWith == Provider.Ours) None
    else Some(
      s"this query runs WITHOUT spark-ckpt: by Spark's offset log, the state in ${Redaction.redacted(location)} " +
        s"belongs to $runsWith, and Spark continues with it although the session has " +
        s"${Provider.Key}=${Provider.Ours}. A location keeps its provider. To bring the state to spark-ckpt, stop " +
        s"the query and run: spark-ckpt import ${Redaction.redacted(location)}")
}
