// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.metrics

import com.codahale.metrics.{Counter, Gauge, MetricRegistry}

import org.apache.spark.metrics.source.Source
import org.apache.spark.sql.ckpt.ui.CheckpointReport

/**
 * Figures of a run of a query. Where Flink has the figure, it has Flink's name.
 *
 * @param label name of the query; letters, digits and underscores
 */
private[metrics] final class QuerySource(val label: String) extends Source {
  import QuerySource._

  override val metricRegistry = new MetricRegistry

  /** `removeSource` removes all names with this prefix, so the label is not at its end. */
  override val sourceName: String = s"sparkCkpt.$label.checkpoints"

  private val triggered = metricRegistry.counter("totalNumberOfCheckpoints")
  private val completed = metricRegistry.counter("numberOfCompletedCheckpoints")
  private val failed = metricRegistry.counter("numberOfFailedCheckpoints")
  private val restored = metricRegistry.counter("numberOfRestoredCheckpoints")
  private val failures = Map(
    "storage" -> metricRegistry.counter("numberOfStorageFailures"),
    "base snapshot" -> metricRegistry.counter("numberOfBaseFailures"))

  private val inProgress = figure("numberOfInProgressCheckpoints", 0)
  private val triggeredMs = figure("lastCheckpointTriggeredTimestamp")
  private val completedMs = figure("lastCheckpointCompletedTimestamp")
  private val failedMs = figure("lastCheckpointFailedTimestamp")
  private val restoredMs = figure("lastCheckpointRestoreTimestamp")
  private val id = figure("lastCompletedCheckpointId")
  private val duration = figure("lastCheckpointDuration")
  private val publishing = figure("lastCheckpointPublishDuration")
  private val newBytes = figure("lastCheckpointSize")
  private val stateBytes = figure("lastCheckpointFullSize")
  private val rows = figure("lastCheckpointRows")
  private val chainLength = figure("lastCheckpointChainLength")
  private val generation = figure("generation")
  private val filesToDelete = figure("filesToDelete")
  private val filesLeftBehind = figure("filesLeftBehind")

  /** Takes the figures of a report. Called by one thread at a time. */
  def reported(report: CheckpointReport): Unit = {
    report.status match {
      case CheckpointReport.Triggered => begin()
      case CheckpointReport.Completed =>
        finish(completed, report)
        durable(report)
        duration.set(report.durationMs)
        publishing.set(report.completingMs)
        newBytes.set(report.newBytes)
      case CheckpointReport.Failed =>
        finish(failed, report)
        failedMs.set(report.failedMs)
      case CheckpointReport.Restored =>
        restored.inc()
        restoredMs.set(report.restoredMs)
        durable(report)
      case _ => // of a later release
    }
    triggeredMs.set(report.triggeredMs)
    generation.set(report.generation)
    filesToDelete.set(report.filesToDelete)
    filesLeftBehind.set(report.filesLeftBehind)
  }

  /** One in progress already: a restarted side process reports it again. */
  private def begin(): Unit = if (inProgress.getValue == 0) {
    triggered.inc()
    inProgress.set(Some(1))
  }

  private def finish(outcome: Counter, report: CheckpointReport): Unit = {
    begin()
    inProgress.set(Some(0))
    outcome.inc()
    report.failures.foreach { case (reason, count) => failures.get(reason).foreach(_.inc(count)) }
  }

  private def durable(report: CheckpointReport): Unit = {
    id.set(report.id)
    completedMs.set(report.completedMs)
    stateBytes.set(report.stateBytes)
    rows.set(report.rows)
    chainLength.set(report.chainLength)
  }

  private def figure(name: String, initially: Double = Double.NaN): Figure =
    metricRegistry.register(name, new Figure(initially))
}

private[metrics] object QuerySource {

  /**
   * The last known value of a figure, or NaN. Always a number: Spark's Prometheus servlet writes a null as `null`, and
   * Prometheus then rejects the whole answer.
   */
  private final class Figure(initially: Double) extends Gauge[Double] {
    @volatile private var value = initially

    override def getValue: Double = value

    /** Keeps the last value if there is none. */
    def set(number: Option[Long]): Unit = number.foreach(known => value = known.toDouble)
  }
}
