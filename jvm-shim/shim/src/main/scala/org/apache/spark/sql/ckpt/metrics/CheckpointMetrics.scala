// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.metrics

import scala.collection.mutable
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.internal.Logging
import org.apache.spark.metrics.MetricsSystem
import org.apache.spark.sql.ckpt.bridge.SideProcessStatus
import org.apache.spark.sql.ckpt.common.LostLocation
import org.apache.spark.sql.ckpt.ui.CheckpointReport

/**
 * Figures of the driver and of each query in Spark's metrics system (docs/metrics.md). A query has a source from its
 * first batch until the coordinator has closed its run. Never throws: no query fails for its metrics.
 *
 * @param system  metrics system of the application
 * @param process the side process
 */
private[ckpt] final class CheckpointMetrics(system: MetricsSystem, process: SideProcessStatus) extends Logging {
  import CheckpointMetrics._

  private final class Run(val queryId: String, val source: QuerySource) {
    var isRegistered = true
    var isEnding, isFenced = false
  }

  private val runs = mutable.HashMap.empty[String, Run]
  private val driver = new DriverSource(process, () => synchronized(runs.size))

  safely(system.registerSource(driver))

  /**
   * A run has its first batch with state.
   *
   * @param name name of the query, if it has one
   */
  def began(runId: String, queryId: String, name: Option[String]): Unit = safely {
    // The end of a run that is stopped and started again may come after the start.
    runs.values.filter(_.queryId == queryId).foreach(remove)
    val run = new Run(queryId, new QuerySource(freeLabel(name, queryId)))
    runs.put(runId, run).foreach(remove)
    system.registerSource(run.source)
  }

  /** The side process has reported a checkpoint. */
  def reported(json: JsonNode): Unit = safely {
    val report = new CheckpointReport(json)
    runs.get(report.runId).foreach { run =>
      run.source.reported(report)
      if (report.status == CheckpointReport.Failed) {
        if (!run.isEnding) driver.failedCheckpoints.inc()
        if (report.cause.startsWith(FencedCause)) fenced(run)
      }
    }
  }

  /**
   * A query has ended. Its last checkpoint is reported later, if it was in progress.
   *
   * @param exception stack trace of the failure that has ended it
   */
  def ended(runId: String, exception: Option[String]): Unit = safely {
    runs.get(runId).foreach { run =>
      run.isEnding = exception.isEmpty
      if (exception.exists(LostLocation.isCause)) fenced(run)
    }
  }

  /** The side process has closed a run: it reports no more of it. */
  def closed(runId: String): Unit = safely(runs.remove(runId).foreach(remove))

  private def fenced(run: Run): Unit = if (!run.isFenced) {
    run.isFenced = true
    driver.fencedRuns.inc()
  }

  private def freeLabel(name: Option[String], queryId: String): String = {
    val taken = runs.values.filter(_.isRegistered).map(_.source.label).toSet
    val label = labelOf(name.getOrElse(queryId))
    if (taken(label)) s"${label}_${labelOf(queryId)}" else label
  }

  private def remove(run: Run): Unit = if (run.isRegistered) {
    run.isRegistered = false
    system.removeSource(run.source)
  }

  private def safely(action: => Unit): Unit = synchronized {
    try action catch { case NonFatal(e) => logWarning("the metrics of checkpoints are incomplete", e) }
  }
}

private[metrics] object CheckpointMetrics {

  /** Start of the cause with which the coordinator aborts the checkpoint of a fenced run. */
  private val FencedCause = "fenced: "

  /** Spark accepts names of any length, and each figure has the label in its own name. */
  private val MaxLabel = 200

  /** Letters and digits of a name. Spark's Prometheus servlet replaces all others. */
  def labelOf(name: String): String = name.take(MaxLabel).replaceAll("[^a-zA-Z0-9]", "_")
}
