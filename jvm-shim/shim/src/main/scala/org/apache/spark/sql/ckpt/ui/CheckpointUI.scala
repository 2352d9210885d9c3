// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.sql.ckpt.SparkListenerCheckpoint
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.SparkUI

/** The tab of a running application, and the events behind it. */
private[ckpt] object CheckpointUI extends Logging {

  /** Whether anything shows the operators and subtasks of reports: the UI or the event log. */
  def wantsDetails(context: SparkContext): Boolean = context.ui.isDefined || context.isEventLogEnabled

  /** Posts a report for the UI and the event log, if there is either. */
  def post(context: SparkContext, report: JsonNode): Unit =
    if (wantsDetails(context)) context.listenerBus.post(SparkListenerCheckpoint(report))

  /** Attaches the tab if the application has a UI. Never throws: no query fails for its tab. */
  def attach(context: SparkContext): Unit =
    try {
      context.ui.filter(_ => isEnabled(context.getConf)).foreach { ui =>
        val store = context.statusStore.store.asInstanceOf[ElementTrackingStore]
        context.listenerBus.addToStatusQueue(new CheckpointStatusListener(context.getConf, store))
        new CheckpointTab(new CheckpointStatusStore(store), ui)
      }
    } catch {
      case NonFatal(e) => logWarning("Spark's UI gets no tab for checkpoints", e)
    }

  /** Spark's switch for its own tab of streaming queries. */
  private[ui] def isEnabled(conf: SparkConf): Boolean = conf.get(StaticSQLConf.STREAMING_UI_ENABLED)
}

/** The tab in the History Server, for applications whose event log has checkpoints. */
final class CheckpointHistoryServerPlugin extends AppHistoryServerPlugin {
  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    Seq(new CheckpointStatusListener(conf, store))

  override def setupUI(ui: SparkUI): Unit = {
    val store = new CheckpointStatusStore(ui.store.store)
    if (store.runs.nonEmpty) new CheckpointTab(store, ui)
  }
}
