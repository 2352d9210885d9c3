// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.collection.mutable

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.ckpt.SparkListenerCheckpoint
import org.apache.spark.sql.ckpt.common.{LostLocation, OwnThreads}
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent
import org.apache.spark.status.ElementTrackingStore

/**
 * Keeps the status of checkpoints, from the events of a running application or from its event log. The same events
 * give the same status. As many runs and checkpoints of each are kept as Spark keeps of its own streaming statistics.
 */
private[ckpt] final class CheckpointStatusListener(conf: SparkConf, store: ElementTrackingStore) extends SparkListener {
  import CheckpointStatusListener._

  private final class Run(val id: String, val sequence: Long) {
    val keys = mutable.Queue.empty[String]
    var isActive = true
    var isFenced = false
    var triggered, completed, failed, restored, next = 0L
    var inProgress: Option[(Long, CheckpointReport)] = None
    var started, lastReport, lastCompleted, lastFailed, lastRestored, lastSavepoint = ""

    def status = new RunStatus(id, sequence, isActive, isFenced, triggered, completed, failed, restored,
      inProgress.fold(-1L)(_._1), started, lastReport, lastCompleted, lastFailed, lastRestored, lastSavepoint)
  }

  private val retainedRuns = conf.get(StaticSQLConf.STREAMING_UI_RETAINED_QUERIES).max(1)
  private val retainedCheckpoints = conf.get(StaticSQLConf.STREAMING_UI_RETAINED_PROGRESS_UPDATES).max(1)
  private val runs = mutable.LinkedHashMap.empty[String, Run]
  private val details = mutable.Queue.empty[String]
  private var nextRun = 0L

  override def onOtherEvent(event: SparkListenerEvent): Unit = OwnThreads.guard(Listener)(handle(event))

  private def handle(event: SparkListenerEvent): Unit = event match {
    case SparkListenerCheckpoint(json) if json != null => reported(new CheckpointReport(json))
    case ended: QueryTerminatedEvent =>
      runs.get(ended.runId.toString).foreach { run =>
        run.isActive = false
        run.isFenced |= ended.exception.exists(LostLocation.isCause)
        store.write(run.status)
      }
    case _ =>
  }

  /** Nothing is reported any more: what was in progress has not completed. */
  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = OwnThreads.guard(Listener) {
    runs.values.foreach { run =>
      run.inProgress.foreach { case (_, report) => failed(run, report.ended(event.time)) }
      run.isActive = false
      store.write(run.status)
    }
  }

  private def reported(report: CheckpointReport): Unit = if (report.runId.nonEmpty) {
    val run = runs.getOrElseUpdate(report.runId, newRun(report.runId))
    report.status match {
      case CheckpointReport.Started => run.started = report.brief
      case CheckpointReport.Restored =>
        run.restored += 1
        run.lastRestored = report.brief
      case CheckpointReport.Savepoint => run.lastSavepoint = report.brief
      case CheckpointReport.Triggered => triggered(run, report)
      case CheckpointReport.Progress => progressed(run, report)
      case CheckpointReport.Completed =>
        run.completed += 1
        run.lastCompleted = report.brief
        finished(run, report)
      case CheckpointReport.Failed => failed(run, report)
      case _ => // of a later release
    }
    if (report.status != CheckpointReport.Savepoint || run.lastReport.isEmpty) run.lastReport = report.brief
    store.write(run.status)
  }

  /**
   * A run has one checkpoint in progress. If another begins, the side process has ended meanwhile: either this is the
   * same one again, or the report of the earlier one is lost.
   */
  private def triggered(run: Run, report: CheckpointReport): Unit = {
    val number = run.inProgress.fold(begin(run))(_._1)
    run.inProgress = Some((number, report))
    write(run, number, report)
  }

  private def progressed(run: Run, report: CheckpointReport): Unit =
    run.inProgress.filter(_._2.version == report.version).foreach { case (number, _) =>
      run.inProgress = Some((number, report))
      write(run, number, report)
    }

  private def failed(run: Run, report: CheckpointReport): Unit = {
    run.failed += 1
    run.lastFailed = report.brief
    run.isFenced |= report.reason == CheckpointReport.Fenced
    finished(run, report)
  }

  private def finished(run: Run, report: CheckpointReport): Unit = {
    val number = run.inProgress.fold(begin(run))(_._1)
    run.inProgress = None
    write(run, number, report)
  }

  private def begin(run: Run): Long = {
    val number = run.next
    run.next += 1
    run.triggered += 1
    run.keys.enqueue(CheckpointStatusStore.key(run.id, number))
    while (run.keys.size > retainedCheckpoints) forget(run.keys.dequeue())
    number
  }

  private def write(run: Run, number: Long, report: CheckpointReport): Unit = {
    val key = CheckpointStatusStore.key(run.id, number)
    store.write(new CheckpointStatus(key, run.id, number, report.summary))
    if (report.operators.nonEmpty) {
      store.write(new CheckpointDetails(key, report.whole))
      details.enqueue(key)
      while (details.size > MaxDetails) delete(classOf[CheckpointDetails], details.dequeue())
    }
  }

  private def newRun(id: String): Run = {
    nextRun += 1
    if (runs.size >= retainedRuns) {
      val oldest = runs.values.find(!_.isActive).getOrElse(runs.head._2)
      runs.remove(oldest.id)
      oldest.keys.foreach(forget)
      delete(classOf[RunStatus], oldest.id)
    }
    new Run(id, nextRun)
  }

  private def forget(key: String): Unit = {
    delete(classOf[CheckpointStatus], key)
    delete(classOf[CheckpointDetails], key)
  }

  private def delete(kind: Class[_], key: String): Unit =
    try store.delete(kind, key) catch { case _: NoSuchElementException => }
}

private[ckpt] object CheckpointStatusListener {
  private val Listener = "the listener for the tab of checkpoints"

  /** Checkpoints with operators and subtasks, over all runs. One with 1,000 subtasks takes about 50 KB. */
  private[ui] val MaxDetails = 200
}
