// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.ckpt.SparkListenerCheckpoint
import org.apache.spark.sql.ckpt.protocol.Trigger
import org.apache.spark.sql.internal.StaticSQLConf

class CheckpointUISuite extends AnyFunSuite {

  private def withContext(settings: (String, String)*)(test: SparkContext => Unit): Unit = {
    val conf = new SparkConf(false).setMaster("local[1]").setAppName("ui").set("spark.driver.host", "127.0.0.1")
      .set("spark.driver.bindAddress", "127.0.0.1").set("spark.ui.port", "0").setAll(settings)
    val context = new SparkContext(conf)
    try test(context) finally context.stop()
  }

  private def hasTab(context: SparkContext): Boolean = context.ui.exists(_.getTabs.exists(_.name == "Checkpoints"))

  private def trigger(details: Boolean) = Trigger("job", "location", "query", None, 0, 1, 1, "4.2.0", Nil, Nil, None,
    Map.empty, Map.empty, reportDetails = details).toMessage.json

  test("the driver asks for details of reports only if it says so") {
    assert(trigger(details = true).path("report_details").asBoolean())
    assert(!trigger(details = false).path("report_details").asBoolean(true))
  }

  test("without UI and event log there is nothing to report to") {
    withContext("spark.ui.enabled" -> "false") { context =>
      assert(!CheckpointUI.wantsDetails(context))
      CheckpointUI.attach(context)
    }
  }

  test("events reach listeners and the tab") {
    withContext("spark.ui.enabled" -> "true") { context =>
      assert(CheckpointUI.wantsDetails(context) && !hasTab(context))
      val seen = mutable.Buffer.empty[SparkListenerEvent]
      context.addSparkListener(new SparkListener {
        override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
          case checkpoint: SparkListenerCheckpoint => seen.synchronized(seen += checkpoint)
          case _ =>
        }
      })
      CheckpointUI.attach(context)
      val report = SampleReports.completed(1)
      CheckpointUI.post(context, report.report)
      context.listenerBus.waitUntilEmpty()
      assert(seen.synchronized(seen.toSeq) == Seq(report))
      assert(hasTab(context))
      assert(new CheckpointStatusStore(context.statusStore.store).runs.map(_.completed) == Seq(1))
    }
  }

  test("Spark's switch for its tab of streaming queries is ours too") {
    withContext("spark.ui.enabled" -> "true", StaticSQLConf.STREAMING_UI_ENABLED.key -> "false") { context =>
      CheckpointUI.attach(context)
      assert(!hasTab(context))
    }
  }
}
