// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.ckpt.SparkListenerCheckpoint
import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.util.JsonProtocol
import org.apache.spark.util.kvstore.InMemoryStore

class CheckpointStatusListenerSuite extends AnyFunSuite {
  import SampleReports._

  private val conf = new SparkConf(false)

  private def status(events: Seq[SparkListenerEvent], conf: SparkConf = conf): CheckpointStatusStore = {
    val store = new ElementTrackingStore(new InMemoryStore, conf)
    val listener = new CheckpointStatusListener(conf, store)
    events.foreach {
      case end: SparkListenerApplicationEnd => listener.onApplicationEnd(end)
      case event => listener.onOtherEvent(event)
    }
    new CheckpointStatusStore(store)
  }

  /** All of the status as text, to compare. */
  private def dump(store: CheckpointStatusStore): Seq[String] = store.runs.flatMap { run =>
    val counts = Seq(run.sequence, run.triggered, run.completed, run.failed, run.restored, run.inProgress)
    val latest = Seq(
      run.started, run.lastSavepoint, run.lastReport, run.lastCompleted, run.lastFailed, run.lastRestored)
    val checkpoints = store.checkpoints(run.runId).flatMap { checkpoint =>
      Seq(s"${checkpoint.key} ${checkpoint.report}", store.details(checkpoint.key).fold("")(_.report))
    }
    s"${run.runId} ${run.isActive} ${run.isFenced} $counts $latest" +: checkpoints
  }

  private def counts(run: RunStatus) = (run.triggered, run.completed, run.failed, run.restored)

  private def statuses(store: CheckpointStatusStore, run: String = Run): Seq[String] =
    store.checkpoints(run).map(found => CheckpointReport.of(found.report)).map(r => s"${r.batchId} ${r.status}")

  test("counts and the newest checkpoint of each kind") {
    val store = status(
      Seq(restored(), triggered(8), completed(8), triggered(9), failed(9), triggered(9), completed(9), triggered(10)))
    val Seq(run) = store.runs
    assert(counts(run) == ((4, 2, 1, 1)))
    assert(run.isActive && run.inProgress == 3)
    assert(CheckpointReport.of(run.lastCompleted).batchId == 9)
    assert(CheckpointReport.of(run.lastFailed).cause == "expired: x")
    assert(CheckpointReport.of(run.lastRestored).id.contains(107))
    assert(statuses(store) == Seq("8 completed", "9 failed", "9 completed", "10 triggered"))
  }

  test("acknowledgements of the checkpoint in progress") {
    val store = status(Seq(started(), triggered(1), progress(1, 2), progress(1, 3)))
    val Seq(run) = store.runs
    assert(counts(run) == ((1, 0, 0, 0)) && run.inProgress == 0)
    assert(store.reports(Run).map(report => (report.status, report.acks)) == Seq(("progress", Some(3))))
    assert(StartReport.of(run.started).map(_.claim.generation).contains(Some(2)))
    val later = status(Seq(triggered(1), completed(1), progress(1, 3), triggered(2), progress(1, 3)))
    assert(statuses(later) == Seq("1 completed", "2 triggered"))
    assert(statuses(status(Seq(triggered(1), progress(1, 2), failed(1)))) == Seq("1 failed"))
    assert(statuses(status(Seq(triggered(1), progress(1, 2), SparkListenerApplicationEnd(7)))) == Seq("1 failed"))
  }

  test("a run is fenced once another driver has taken over") {
    val store = status(Seq(triggered(1), failed(1), triggered(1, "other"), failed(1, "other", reason = "fenced")))
    assert(store.runs.map(run => (run.runId, run.isFenced)) == Seq((Run, false), ("other", true)))
    def ended(exception: String) =
      new QueryTerminatedEvent(UUID.randomUUID(), UUID.fromString(Run), Some(exception), None)
    def fenced(exception: String) = status(Seq(triggered(1), completed(1), ended(exception))).runs.head.isFenced
    assert(fenced("CheckpointFailure: [LogFencedError] was rolled back") && !fenced("the FencedError of a program"))
  }

  test("only summaries are kept beside the newest details") {
    val store = status(Seq(triggered(1), completed(1)))
    val Seq(checkpoint) = store.checkpoints(Run)
    val summary = CheckpointReport.of(checkpoint.report)
    assert(summary.subtasks.isEmpty && summary.operators.size == 1)
    assert(CheckpointReport.of(store.runs.head.lastCompleted).operators.isEmpty)
    val details = CheckpointReport.of(store.details(checkpoint.key).get.report)
    assert(details.subtasks.map(_.partition) == Seq(0, 1, 2, 3))
    assert(details.operators.map(_.spread("write_us")) == Seq(Some(Seq(1, 2, 3))))
    assert(details.durationMs.contains(70) && details.failures == Seq("storage" -> 2L))
  }

  test("a checkpoint that begins again after the end of the side process is the same one") {
    val store = status(Seq(triggered(1), triggered(1), completed(1)))
    assert(counts(store.runs.head) == ((1, 1, 0, 0)))
    assert(statuses(store) == Seq("1 completed"))
  }

  test("runs are independent, and end with their query") {
    val other = "00000000-0000-0000-0000-000000000002"
    val end = new QueryTerminatedEvent(UUID.randomUUID(), UUID.fromString(Run), None, None)
    val store = status(Seq(triggered(1), triggered(5, other), completed(5, other), end, failed(1)))
    assert(store.runs.map(run => (run.runId, run.isActive)) == Seq((Run, false), (other, true)))
    assert(statuses(store) == Seq("1 failed"))
    assert(statuses(store, other) == Seq("5 completed"))
    assert(store.run(other).map(counts).contains((1, 1, 0, 0)))
  }

  test("nothing is in progress after the end of the application") {
    val store = status(Seq(triggered(1), completed(1), triggered(2), SparkListenerApplicationEnd(77)))
    val run = store.runs.head
    assert(!run.isActive && run.inProgress == -1)
    assert(counts(run) == ((2, 1, 1, 0)))
    assert(CheckpointReport.of(run.lastFailed).failedMs.contains(77))
    assert(statuses(store) == Seq("1 completed", "2 failed"))
  }

  test("checkpoints of a run, runs and details are bounded") {
    val few = conf.clone()
      .set(StaticSQLConf.STREAMING_UI_RETAINED_PROGRESS_UPDATES, 5)
      .set(StaticSQLConf.STREAMING_UI_RETAINED_QUERIES, 2)
    val store = status((1L to 40).flatMap(n => Seq(triggered(n), completed(n))), few)
    assert(statuses(store) == (36 to 40).map(n => s"$n completed"))
    assert(counts(store.runs.head) == ((40, 40, 0, 0)))
    assert(store.details(CheckpointStatusStore.key(Run, 34)).isEmpty)

    val runs = (1 to 4).map(n => s"run $n")
    val ended = status(runs.flatMap(run => Seq(triggered(1, run), completed(1, run))), few)
    assert(ended.runs.map(_.runId) == Seq("run 3", "run 4"))
    assert(ended.checkpoints("run 1").isEmpty && ended.checkpoint(CheckpointStatusStore.key("run 1", 0)).isEmpty)

    val most = CheckpointStatusListener.MaxDetails
    val many = status((1L to most + 3).flatMap(n => Seq(triggered(n), completed(n))),
      conf.clone().set(StaticSQLConf.STREAMING_UI_RETAINED_PROGRESS_UPDATES, most + 50))
    val withDetails = many.checkpoints(Run).map(found => many.details(found.key).isDefined)
    assert(withDetails == Seq.fill(3)(false) ++ Seq.fill(most)(true))
  }

  test("a run that has ended makes room before one that is active") {
    val few = conf.clone().set(StaticSQLConf.STREAMING_UI_RETAINED_QUERIES, 2)
    val second = "00000000-0000-0000-0000-000000000002"
    val end = new QueryTerminatedEvent(UUID.randomUUID(), UUID.fromString(second), None, None)
    val store = status(Seq(triggered(1), triggered(1, second), end, triggered(1, "third")), few)
    assert(store.runs.map(_.runId) == Seq(Run, "third"))
  }

  test("the event log gives the same status") {
    val events = Seq[SparkListenerEvent](started(name = Hostile), savepoint(Hostile),
      restored(name = Hostile), triggered(1, name = Hostile), completed(1, name = Hostile), triggered(2),
      failed(2), triggered(3), SparkListenerApplicationEnd(9))
    val lines = events.map(JsonProtocol.sparkEventToJsonString)
    assert(lines.head.contains(""""Event":"org.apache.spark.sql.ckpt.SparkListenerCheckpoint""""))
    assert(dump(status(lines.map(JsonProtocol.sparkEventFromJson))) == dump(status(events)))
  }

  test("the event log has no acknowledgements of a checkpoint in progress") {
    assert(!progress(1, 2).logEvent)
    assert(Seq(started(), restored(), triggered(1), completed(1), failed(1)).forall(_.logEvent))
    assert(SparkListenerCheckpoint(null).logEvent)
  }

  test("reports of other releases are taken for what is known of them") {
    val later = Message.newHeader().put("status", "paused").put("run_id", Run).put("query_name", "x").put("new", 1)
    val store = status(Seq(SparkListenerCheckpoint(null), SparkListenerCheckpoint(Message.newHeader()),
      SparkListenerCheckpoint(later), triggered(1)))
    assert(counts(store.runs.head) == ((1, 0, 0, 0)))
  }

  test("the History Server has the plugin") {
    val plugins = java.util.ServiceLoader.load(classOf[org.apache.spark.status.AppHistoryServerPlugin])
    val ours = plugins.iterator()
    var found = false
    while (ours.hasNext) found |= ours.next().isInstanceOf[CheckpointHistoryServerPlugin]
    assert(found)
  }
}
